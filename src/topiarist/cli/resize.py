"""`topiarist resize METHOD`: resize a saved network by a method, to a budget, and report what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer
from pydantic import Field, model_validator

from topiarist.cli.derived import DerivedOptions, derive, with_options
from topiarist.cli.loading import load_network, task_for
from topiarist.cli.options import (
    BUDGET,
    AsJson,
    DataLocation,
    Group,
    Into,
    ModelFile,
    ModelOut,
    Seed,
    Target,
    check_model_out,
)
from topiarist.cli.output import checkpoint_beside, console, emit, epoch_bar, print_rows, resumable_from, waiting
from topiarist.methods import FineTuning, Method, Outcome, Rewinding, TrainingMethod, registered, resize
from topiarist.settings import Settings
from topiarist.training import Distillation, TrainConfig

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.measurement import Budget

app = typer.Typer(help="Resize a trained network by a method, to a budget, and save it.", no_args_is_help=True)

SPELLED = {"angle_degrees": "--angle", "keep_fraction": "--keep", "spaces": "--space", "kinds": "--kind"}
TRAINING = derive(
    TrainConfig,
    "Training",
    only=("epochs", "batch_size", "learning_rate", "optimizer", "weight_decay", "schedule"),
    spelled={
        "batch_size": "--batch --batch-size",
        "learning_rate": "--lr --learning-rate",
        "schedule.name": "--schedule",
    },
)


class AfterCut(Settings):
    """What follows each cut, in the words of the command line."""

    finetune: int | None = Field(default=None, ge=1, description="Fine-tune for so many epochs.")
    finetune_lr: float | None = Field(default=None, gt=0, description="Highest learning rate of it; 0.002 by default.")
    distil: bool | None = Field(
        default=None,
        description="Also learn what the uncut network answers; by default with --finetune, not with --rewind.",
    )
    rewind: int | None = Field(
        default=None, ge=0, description="Repeat the original training from this epoch on, with its learning rates."
    )
    early: Path | None = Field(
        default=None,
        description="With --rewind: start from the weights in this file, those of that epoch (train --until-epoch).",
    )

    @model_validator(mode="after")
    def _what_goes_together(self) -> Self:
        if self.rewind is not None and self.finetune is not None:
            raise ValueError("--finetune and --rewind both train the cut network: give one")
        if self.early is not None and self.rewind is None:
            raise ValueError("--early belongs to --rewind: say from which epoch on")
        if self.finetune_lr is not None and self.finetune is None:
            raise ValueError("--finetune-lr belongs to --finetune: say for how many epochs")
        if self.distil is not None and self.finetune is None and self.rewind is None:
            raise ValueError("--distil and --no-distil belong to --finetune and --rewind: give one of these")
        return self

    @property
    def retraining(self) -> FineTuning | Rewinding | None:
        """What `resize` takes."""
        if self.finetune is not None:
            rate = {} if self.finetune_lr is None else {"learning_rate": self.finetune_lr}
            teacher = None if self.distil is False else Distillation()
            return FineTuning(epochs=self.finetune, **rate, distillation=teacher)
        if self.rewind is not None:
            teacher = Distillation() if self.distil else None
            return Rewinding(epoch=self.rewind, weights=self.early is not None, distillation=teacher)
        return None


AFTER_CUT = derive(AfterCut, "After each cut, or during it", spelled={"distil": "--distil/--no-distil"})


@dataclass(frozen=True)
class MethodCommand:
    """The command of one method: its own options, a budget, and training of its own or after each cut."""

    method: type[Method]
    options: DerivedOptions[Method]

    def run(self, model: Path, data: str, values: Mapping[str, Any]) -> None:
        """Resize a network, save it, and show what it cost."""
        out = values["out"]
        check_model_out(out)
        chosen = self._method(values)
        given = BUDGET.make(values)
        budget = given if given != type(given)() else None
        after = AfterCut() if self.method.traits.own_training else AFTER_CUT.make(values)
        network = load_network(model, values["into"])
        early = None if after.early is None else load_network(after.early, values["into"])
        samples = task_for(network, data, target=values["target"], group=values["group"])
        if self.method.traits.resumes:
            outcome = self._resumable(network, samples, chosen, budget, values)
        else:
            with waiting(f"{self.method.name} on {model.name}"):
                outcome = resize(
                    network,
                    samples,
                    chosen,
                    budget=budget,
                    retraining=after.retraining,
                    early=early,
                    seed=values["seed"],
                )
        result = {"model": str(model), "data": samples.name, "method": self.method.name, "seed": values["seed"]}
        result |= {**outcome.to_json(), "out": None if out is None else str(out)}
        if out is not None:
            from topiarist.storage import save

            save(outcome.model, out, data=samples)
            if outcome.lineage is not None:
                from topiarist.report.writing import write_lineage

                result["lineage_files"] = write_lineage(outcome.lineage, out)
        emit(result, as_json=values["as_json"], show=show_outcome)

    def _method(self, values: Mapping[str, Any]) -> Method:
        """Return the method with what stands in the call; of its training, the rest stays as it is."""
        made: Method = self.options.make(values)
        changes = TRAINING.values(values) if self.method.traits.own_training else {}
        if not changes or not isinstance(made, TrainingMethod):
            return made
        with TRAINING.naming():
            usual = made.usual_training.model_dump()
            schedule = {**usual["schedule"], **changes.pop("schedule", {})}
            training = TrainConfig(**{**usual, **changes, "schedule": schedule})
        with self.options.naming():
            return type(made)(**{**made.model_dump(exclude_unset=True), "training": training})

    def _resumable(
        self, network: "nn.Module", data: "Data", method: Method, budget: "Budget | None", values: Mapping[str, Any]
    ) -> Outcome:
        """Train and resize with a bar and a checkpoint; an interruption prints how to resume."""
        assert isinstance(method, TrainingMethod)  # only what trains has something to resume
        epochs, checkpoint = method.usual_training.epochs, checkpoint_beside(values["out"])
        with resumable_from(checkpoint), epoch_bar(epochs, method.name) as show:

            def tell(share: float) -> None:
                if show is not None:
                    show(round(share * epochs), ())

            return resize(
                network, data, method, budget=budget, seed=values["seed"], checkpoint=checkpoint, on_progress=tell
            )


def add_command(method: type[Method]) -> None:
    """Give a method its command."""
    command = MethodCommand(method, derive(method, "The method", without=("training",), spelled=SPELLED))

    def run(
        model: ModelFile,
        data: DataLocation,
        out: ModelOut = None,
        target: Target = None,
        group: Group = None,
        into: Into = None,
        seed: Seed = 0,
        as_json: AsJson = False,
        **options: Any,
    ) -> None:
        common = {"out": out, "target": target, "group": group, "into": into, "seed": seed, "as_json": as_json}
        command.run(model, data, {**common, **options})

    example = f"Example: topiarist resize {method.name} digits.safetensors digits --out small.safetensors"
    details = (method.__doc__ or "").partition("\n")[2].strip()
    training = TRAINING if method.traits.own_training else AFTER_CUT
    derived = with_options(command.options, BUDGET, training)(run)
    app.command(method.name, help=f"{method.traits.summary}\n\n{example}\n\n{details}")(derived)


for _method in registered().values():
    add_command(_method)


def show_outcome(result: Mapping[str, Any]) -> None:
    """Print what a person wants to know: before and after, side by side."""
    from rich.table import Table

    print_rows({"model": result["model"], "data": result["data"], "method": result["method"]})
    table = Table(box=None, pad_edge=False)
    for heading in ("", "before", "after", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for row in compared(result["before"], result["after"]):
        table.add_row(*row)
    for name, units in result["units"].items():
        table.add_row(f"units of {name}", str(units["before"]), str(units["after"]), "")
    console().print(table)
    rows = {"why": "\n".join(result["reasons"])}
    rows |= {"saved": result["out"]} if result["out"] else {}
    rows |= {"lineage": "\n".join(result["lineage_files"].values())} if "lineage_files" in result else {}
    print_rows(rows)


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table: a figure, before, after, and what that means."""
    points = 100 * (after["accuracy"] - before["accuracy"])
    rows = [("accuracy", f"{before['accuracy']:.2%}", f"{after['accuracy']:.2%}", f"{points:+.2f} points")]
    for label, name, form, words in (
        ("parameters", "parameters", ",", ("smaller", "larger")),
        ("not zero", "nonzero", ",", ("fewer", "more")),
        ("KB on disk", "file_kb", ".1f", ("smaller", "larger")),
        ("MACs", "macs", ",", ("smaller", "larger")),
        ("ms per sample", "latency_ms", ".3f", ("faster", "slower")),
    ):
        ratio = before[name] / after[name]
        change = f"{ratio:.1f} × {words[0]}" if ratio >= 1 else f"{1 / ratio:.1f} × {words[1]}"
        rows.append((label, format(before[name], form), format(after[name], form), change))
    return rows
