"""The whole record, which refuses a word that does not follow from its figures."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from topiarist.rightsizing.record.asked import (
    IN_DEVIATIONS,
    DataRecord,
    MetricRecord,
    SettingsRecord,
    TaskRecord,
    VersionsRecord,
    WorkPlanRecord,
)
from topiarist.rightsizing.record.confirmations import (
    CalibrationRecord,
    ConfirmationRecord,
    ConfusionRecord,
    agreement_of,
)
from topiarist.rightsizing.record.decisions import GUESSING, DecisionRecord, RungRecord, VerdictRecord, verdict_of
from topiarist.rightsizing.record.networks import (
    BASELINE,
    ExportsRecord,
    GainsRecord,
    NearestRecord,
    NetworkRecord,
    ReferenceRecord,
)
from topiarist.settings import Record

VERSION = 4  # of the record: 3 had the metric of its task, 4 has references and what exactly was shown


class RightsizingRecord(Record):
    """Everything that is known at the end of a rightsizing, but for the networks themselves."""

    version: int = VERSION
    verdict: VerdictRecord
    task: TaskRecord
    gains: GainsRecord
    data: DataRecord
    settings: SettingsRecord
    plan: WorkPlanRecord
    networks: Annotated[tuple[NetworkRecord, ...], Field(min_length=1)]
    decision: DecisionRecord
    references: tuple[ReferenceRecord, ...] = ()
    test: ConfirmationRecord | None
    confusion: ConfusionRecord
    calibration: CalibrationRecord | None = None
    exports: ExportsRecord = ExportsRecord()
    nearest: tuple[NearestRecord, ...] = ()
    seconds: dict[str, float]
    versions: VersionsRecord

    @model_validator(mode="after")
    def _check_chosen(self) -> Self:
        names = [network.id for network in self.networks]
        if self.verdict.chosen not in names:
            raise ValueError(f"verdict.chosen must be one of {', '.join(names)}; found '{self.verdict.chosen}'")
        return self

    @model_validator(mode="after")
    def _check_claims(self) -> Self:
        """Refuse a word that does not follow from the figures."""
        margin = self.settings.max_drop
        for place, rung in enumerate(self.decision.rungs):
            word = {"tested": rung.tested, "beats_guess": rung.beats_guess}
            found = verdict_of(rung.difference, rung.p, margin=margin, level=rung.level, **word)
            if rung.verdict != found:
                raise ValueError(f"decision.rungs.{place}.verdict must be '{found}' by its figures")
            if rung.inferior != (rung.high < -margin):
                raise ValueError(f"decision.rungs.{place}.inferior does not follow from its upper bound")
        agreement = None if self.verdict.chosen == BASELINE else agreement_of(self.test, margin)
        if self.verdict.agreement != agreement:
            raise ValueError(f"verdict.agreement must be {agreement!r} by the test part")
        self._check_status({rung.network: rung for rung in self.decision.rungs})
        return self

    def _check_status(self, rungs: Mapping[str, RungRecord]) -> None:
        status, chosen = self.verdict.status, self.verdict.chosen
        word = {"proven": "proven", "unproven": "not proven"}.get(status)
        if word is not None and (chosen not in rungs or rungs[chosen].verdict != word):
            raise ValueError(f"verdict.status is '{status}', but the size of '{chosen}' is not '{word}'")
        if word is None and chosen != BASELINE:
            raise ValueError(f"verdict.status is '{status}', but '{chosen}' was chosen")
        if status in ("unchanged", GUESSING) and self.decision.guess.beaten != (status == "unchanged"):
            better = "better" if self.decision.guess.beaten else "no better"
            raise ValueError(f"verdict.status is '{status}', but the baseline is {better} than guessing")
        for offer in self.verdict.offered:
            if offer.network not in rungs or rungs[offer.network].verdict != "not proven":
                raise ValueError(f"verdict.offered: the size of '{offer.network}' is not 'not proven'")

    @property
    def metric(self) -> MetricRecord:
        """What decisions were made by."""
        return self.task.metrics[0]

    @property
    def compared(self) -> MetricRecord:
        """What differences and margins are of: errors of several targets, each in the deviation of its target."""
        metric = self.metric
        if not (metric.relative and metric.in_units and len(self.task.names) > 1):
            return metric
        return metric.model_copy(update={"title": f"{metric.title} {IN_DEVIATIONS}"})

    def network(self, name: str) -> NetworkRecord:
        """Return the record of a network by its id."""
        return next(network for network in self.networks if network.id == name)

    def rung(self, name: str) -> RungRecord:
        """Return the test of the size that a network is of."""
        return next(rung for rung in self.decision.rungs if rung.network == name)

    @property
    def chosen(self) -> NetworkRecord:
        """The network that was chosen; the baseline where none was."""
        return self.network(self.verdict.chosen)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the run: what was left out, what a limit cost, what could not be done."""
        cut = () if self.plan.cut_short is None else (self.plan.cut_short,)
        return (*self.plan.left_out, *cut, *self.plan.notes)

    def with_command(self, command: str) -> "RightsizingRecord":
        """Return the record with the command that made it."""
        return self.model_copy(update={"settings": self.settings.model_copy(update={"command": command})})

    def with_note(self, note: str) -> "RightsizingRecord":
        """Return the record with one more note."""
        return self.model_copy(update={"plan": self.plan.model_copy(update={"notes": (*self.plan.notes, note)})})
