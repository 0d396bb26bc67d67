"""`topiarist resize METHOD`: resize a saved network by a method, to a budget."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import Field

from topiarist.cli.derived import CallValues, DerivedOptions, derive, naming, shown_value, with_options
from topiarist.cli.loading import load_network, task_for
from topiarist.cli.options import (
    BUDGET,
    AsJson,
    DataLocation,
    Device,
    Group,
    Into,
    MetricOption,
    ModelFile,
    ModelOut,
    Seed,
    Target,
    Weight,
    check_model_out,
)
from topiarist.cli.output import (
    checkpoint_beside,
    console,
    emit,
    epoch_bar,
    metric_word,
    print_rows,
    resumable_from,
    shown_metric,
    waiting,
)
from topiarist.cli.retraining_options import AFTER_CUT, AfterCut
from topiarist.errors import SettingsError, escaped
from topiarist.files import JsonObject
from topiarist.methods import Method, Outcome, TrainingMethod, registered, resize
from topiarist.settings import Settings
from topiarist.training import TrainConfig

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data

app = typer.Typer(help="Resize a trained network by a method, to a budget, and save it.", no_args_is_help=True)

RESUMING = (
    "Beside the network it writes its lineage, as .lineage.json and as figures: .tree.svg, .topology.svg and"
    " .curves.svg. After an interruption, the same command with the same --out resumes."
)
SPELLED = {"angle_degrees": "--angle", "keep_fraction": "--keep", "spaces": "--space", "kinds": "--kind"}
OF_TRAINING = ("epochs", "batch_size", "learning_rate", "optimizer", "weight_decay", "schedule")


class IgnoredLayers(Settings):
    """What a method that cuts units must leave alone."""

    ignore: tuple[str, ...] = Field(default=(), description="Layers that keep all of their units, such as hidden0.")


IGNORED = derive(IgnoredLayers, "The method")


def training_options(method: TrainingMethod) -> DerivedOptions[TrainConfig]:
    """Return the options of a method that trains by itself; the defaults are those of its training."""
    usual = method.usual_training
    known = {name: shown_value(getattr(usual, name)) for name in OF_TRAINING}
    known |= {f"schedule.{name}": shown_value(value) for name, value in usual.schedule}
    spelled = {
        "batch_size": "--batch --batch-size",
        "learning_rate": "--lr --learning-rate",
        "schedule.name": "--schedule",
    }
    return derive(TrainConfig, "Training", only=OF_TRAINING, spelled=spelled, defaults=known)


@dataclass(frozen=True)
class MethodCommand:
    """The command of one method: its own options, a budget, and training of its own or after each cut.

    A method whose own settings always decide where to stop has no budget.
    """

    method: type[Method]

    @cached_property
    def options(self) -> DerivedOptions[Method]:
        """The settings of the method."""
        return derive(self.method, "The method", without=("training",), spelled=SPELLED)

    @cached_property
    def training(self) -> DerivedOptions[TrainConfig] | None:
        """The training of a method that trains by its own settings; None of others."""
        plain = self.method()
        return training_options(plain) if plain.traits.own_training and isinstance(plain, TrainingMethod) else None

    @cached_property
    def takes_budget(self) -> bool:
        """Whether a budget can decide where to stop."""
        return not self.method().has_own_target

    @property
    def derived(self) -> list[DerivedOptions[Any]]:
        """All options that are derived from settings."""
        ignored = [] if issubclass(self.method, TrainingMethod) else [IGNORED]
        budget = [BUDGET] if self.takes_budget else []
        return [self.options, *ignored, *budget, AFTER_CUT if self.training is None else self.training]

    @property
    def help(self) -> str:
        """What the command does, with an example."""
        example = f"Example: topiarist resize {self.method.name} digits.safetensors digits --out small.safetensors"
        text = f"{self.method.traits.summary}\n\n{example}\n\n{inspect.cleandoc(self.method.__doc__ or '')}"
        return f"{text}\n\n{RESUMING}" if self.method.traits.resumes else text

    def run(self, model: Path, data: str, values: CallValues) -> None:
        """Resize a network, save it, and show what it cost."""
        out = values["out"]
        check_out(out, (model, data), resumes=self.method.traits.resumes)
        chosen = self.make_method(values)
        budget = BUDGET.make(values) if self.takes_budget and BUDGET.given(values) else None
        after = AFTER_CUT.make(values) if self.training is None else AfterCut()
        if chosen.round_count > 1 and after.retraining is None:
            raise SettingsError("--rounds above 1 needs training between the cuts: add --finetune EPOCHS")
        how = values["into"], values["device"]
        network = load_network(model, *how)
        early = None if after.early is None else load_network(after.early, *how)
        samples = task_for(network, data, target=values["target"], group=values["group"], weight=values["weight"])
        samples = samples.with_metric(values["metric"])
        common: dict[str, Any] = {"budget": budget, "seed": values["seed"], "ignored": IGNORED.make(values).ignore}
        if self.method.traits.resumes:
            outcome = resize_with_checkpoint(network, samples, chosen, out, common)
        else:
            with waiting(f"{self.method.name} on {model.name}"):
                followed: dict[str, Any] = {"retraining": after.retraining, "early": early, "settling": after.settling}
                outcome = resize(network, samples, chosen, **followed, **common)
        result = {"model": str(model), "data": samples.name, "method": self.method.name, "seed": values["seed"]}
        result |= {**outcome.to_json(), "out": None if out is None else str(out)}
        if out is not None:
            from topiarist.storage import save

            save(outcome.model, out, data=samples)
            if outcome.lineage is not None:
                from topiarist.report.writing import write_lineage

                result["lineage_files"] = write_lineage(outcome.lineage, out)
        emit(result, as_json=values["as_json"], show=show_outcome)

    def make_method(self, values: CallValues) -> Method:
        """Return the method with what stands in the call; of its training, the rest stays as it is."""
        made: Method = self.options.make(values)
        changes = {} if self.training is None else self.training.values(values)
        if self.training is None or not changes or not isinstance(made, TrainingMethod):
            return made
        usual = made.usual_training.model_dump()
        schedule = {**usual["schedule"], **changes.pop("schedule", {})}
        with naming(self.training.names | self.options.names):
            training = TrainConfig(**{**usual, **changes, "schedule": schedule})
            if training.epochs == 0:
                raise SettingsError("TrainConfig: epochs must be greater than or equal to 1; found 0")
            return type(made)(**{**made.model_dump(exclude_unset=True), "training": training})


def check_out(out: Path | None, inputs: tuple[Path | str, ...], *, resumes: bool) -> None:
    """Refuse places where a network or its lineage could not be written, before hours of training."""
    from topiarist.files import check_place
    from topiarist.report.writing import lineage_paths

    check_model_out(out, inputs=inputs, resumes=resumes)
    if out is not None and resumes:
        for path in lineage_paths(out).values():
            check_place(path, inputs=inputs)


def resize_with_checkpoint(
    network: "nn.Module", data: "Data", method: Method, out: Path | None, common: Mapping[str, Any]
) -> Outcome:
    """Train and resize with a bar and a checkpoint; an interruption prints how to resume."""
    assert isinstance(method, TrainingMethod)  # only what trains has something to resume
    epochs, checkpoint = method.usual_training.epochs, checkpoint_beside(out)
    with resumable_from(checkpoint), epoch_bar(epochs, method.name) as show:

        def on_progress(share: float) -> None:
            if show is not None:
                show(round(share * epochs), ())

        return resize(network, data, method, checkpoint=checkpoint, on_progress=on_progress, **common)


def add_command(method: type[Method]) -> None:
    """Add the command of a method."""
    command = MethodCommand(method)

    def run(
        model: ModelFile,
        data: DataLocation,
        out: ModelOut = None,
        target: Target = None,
        group: Group = None,
        weight: Weight = None,
        metric: MetricOption = None,
        into: Into = None,
        device: Device = None,
        seed: Seed = 0,
        as_json: AsJson = False,
        **options: Any,
    ) -> None:
        common = {"out": out, "target": target, "group": group, "weight": weight, "metric": metric}
        others = {"into": into, "device": device, "seed": seed, "as_json": as_json}
        command.run(model, data, {**common, **others, **options})

    app.command(method.name, help=command.help)(with_options(*command.derived)(run))


for _method in registered().values():
    add_command(_method)


def show_outcome(result: JsonObject) -> None:
    """Print before and after, side by side."""
    from rich.table import Table
    from rich.text import Text

    print_rows({"model": result["model"], "data": result["data"], "method": result["method"]})
    table = Table(box=None, pad_edge=False)
    for heading in ("", "before", "after", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for row in compared(result["before"], result["after"]):
        table.add_row(*row)
    for name, units in result["units"].items():
        table.add_row(Text(escaped(f"units of {name}")), str(units["before"]), str(units["after"]), "")
    console().print(table)
    rows = {"why": "\n".join(result["reasons"])}
    rows |= {"saved": result["out"]} if result["out"] else {}
    rows |= {"lineage": "\n".join(result["lineage_files"].values())} if "lineage_files" in result else {}
    print_rows(rows)


def compared(before: JsonObject, after: JsonObject) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: a figure, before, after, and what that means."""
    rows = [quality_change(before, after)]
    for label, name, form, words in (
        ("parameters", "parameters", ",", ("smaller", "larger")),
        ("not zero", "nonzero", ",", ("fewer", "more")),
        ("KB on disk", "file_kb", ".1f", ("smaller", "larger")),
        ("MACs", "macs", ",", ("smaller", "larger")),
        ("ms per sample", "latency_ms", ".3f", ("faster", "slower")),
    ):
        change = _change(before[name] / after[name], *words)
        rows.append((label, format(before[name], form), format(after[name], form), change))
    return rows


def quality_change(before: JsonObject, after: JsonObject) -> tuple[str, str, str, str]:
    """Return the row of the primary metric: points where it is a share, per cent where it is an error."""
    name = after.get("primary", "accuracy")
    old, new = before[name], after[name]
    if name in ("rmse", "mae", "mape"):
        change = f"{100 * (new / old - 1):+.2f} %" if old else ""
    else:
        change = f"{100 * (new - old):+.2f} points"
    return metric_word(name), shown_metric(name, old), shown_metric(name, new), change


def _change(ratio: float, less: str, more: str) -> str:
    """Return a ratio in words; none where it rounds to 1.0."""
    times = f"{max(ratio, 1 / ratio):.1f}"
    return "" if times == "1.0" else f"{times} × {less if ratio > 1 else more}"
