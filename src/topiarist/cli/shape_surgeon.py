"""`topiarist shape --method surgeon`: its options, its bar and checkpoint, and the record of what it did in files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from topiarist.cli.output import emit, epoch_bar, waiting
from topiarist.cli.train_run import checkpoint_beside, going_on_from
from topiarist.errors import SettingsError

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.measurement import Budget
    from topiarist.methods import Outcome, Surgeon
    from topiarist.surgery import Recommendation

TRAINING = ("epochs", "batch_size", "learning_rate")
NOT_PUBLISHED = ("aim", "kind", "max_growth")
OPTIONS = ("published", *NOT_PUBLISHED, "interval", "stop_at", "paper", "workers", *TRAINING, "recommend_only")
AS_THEY_ARE = ("published", "interval", "max_growth", "stop_at", "workers")
PAPER = ("initial", "branches", "redraws", "batches", "relative_floor", "absolute_floor", "top", "memory")
OPTION_OF = {"epochs": "--epochs", "batch_size": "--batch-size", "learning_rate": "--lr"}
OPTION_OF |= {name: f"--paper {name}" for name in PAPER}
TRAINING_AFTERWARDS = ("finetune", "finetune_lr", "distil", "rewind", "early")
OF_A_LOOK = ("model", "data", "method", "recommend_only", "target", "group", "into", "seed", "as_json")
SPELT = {"size": "budget"}  # options that have another name than what they are kept as
ENDINGS = {"lineage": ".lineage.json", "tree": ".tree.svg", "topology": ".topology.svg", "curves": ".curves.svg"}


def check_surgeon(given: Sequence[str], out: Path | None) -> None:
    """Refuse options that would have no effect on the surgeon, and places where its record could not be written."""
    for name in given:
        said = f"--{SPELT.get(name, name).replace('_', '-')}"
        if "recommend_only" in given and name not in OF_A_LOOK:
            raise SettingsError(f"{said} has no effect with --recommend-only, which changes and writes nothing")
        if name in TRAINING_AFTERWARDS:
            raise SettingsError(f"{said} has no effect on the surgeon, which trains the network itself: use --epochs")
        if name == "space":
            raise SettingsError("--space belongs to the methods that cut units; the surgeon looks at all of a network")
        if name in NOT_PUBLISHED and "published" in given:
            raise SettingsError(f"{said} has no effect with --published: the paper's algorithm has its own")
    for path in () if out is None else lineage_paths(out).values():
        if path.is_dir():
            raise SettingsError(f"cannot write {path}: it is a folder")


def make_surgeon(given: Mapping[str, Any], named: Sequence[str]) -> "Surgeon":
    """Give the surgeon with what was named in the call; the rest of its training stays as it is."""
    from topiarist.methods import Surgeon
    from topiarist.training import TrainConfig

    chosen = {
        name: given[name] for name in ("published", "interval", "max_growth", "stop_at", "workers") if name in named
    }
    chosen |= {"aim": parse_aim(given["aim"])} if "aim" in named else {}
    chosen |= {"kinds": parse_kinds(given["kind"])} if "kind" in named else {}
    chosen |= parse_paper(given["paper"]) if "paper" in named else {}
    surgeon = Surgeon(**chosen)
    changes = {name: given[name] for name in TRAINING if name in named}
    if not changes:
        return surgeon
    return Surgeon(**chosen, training=TrainConfig(**{**surgeon.course.model_dump(), **changes}))


def parse_aim(text: str) -> str | float:
    """Read an aim: a word, or what twice the parameters must bring."""
    try:
        return float(text)
    except ValueError:
        return text


def parse_kinds(texts: Sequence[str]) -> tuple[str, ...]:
    """Read kinds of change."""
    from topiarist.methods.surgeon.proposals import KINDS

    strange = [text for text in texts if text not in KINDS]
    if strange:
        raise SettingsError(f"--kind must be one of {', '.join(KINDS)}; found '{strange[0]}'")
    return tuple(texts)


def parse_paper(texts: Sequence[str]) -> dict[str, str]:
    """Read NAME=VALUE for settings of the paper's algorithm; raise SettingsError for a name that it does not have."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in PAPER:
            raise SettingsError(f"--paper takes NAME=VALUE with one of {', '.join(PAPER)}; found '{text}'")
        found[name] = value
    return found


def operate(
    network: "nn.Module", data: "Data", surgeon: "Surgeon", *, budget: "Budget | None", seed: int, out: Path | None
) -> "Outcome":
    """Train and change a network with a bar; an interruption says how to go on."""
    from topiarist.methods import shape

    epochs, checkpoint = surgeon.course.epochs, checkpoint_beside(out)
    with going_on_from(checkpoint), epoch_bar(epochs, "surgeon") as show:

        def tell(share: float) -> None:
            if show is not None:
                show(round(share * epochs), ())

        return shape(network, data, surgeon, budget=budget, seed=seed, checkpoint=checkpoint, on_progress=tell)


def lineage_paths(out: Path) -> dict[str, Path]:
    """Name the files beside a network that tell how it came about."""
    return {name: out.with_name(f"{out.stem}{ending}") for name, ending in ENDINGS.items()}


def write_lineage(record: Mapping[str, Any], out: Path) -> dict[str, str]:
    """Write a lineage as JSON and as figures beside the network, and give the paths; no curves without accuracies."""
    from topiarist.files import write_atomically
    from topiarist.report import lineage_curves, lineage_tree, topology_over_time

    contents = {
        "lineage": f"{json.dumps(record, indent=1)}\n",
        "tree": lineage_tree(record),
        "topology": topology_over_time(record),
    }
    if any(node["accuracy"] is not None or node["points"] for node in record["nodes"]):
        contents["curves"] = lineage_curves(record)
    paths = {name: path for name, path in lineage_paths(out).items() if name in contents}
    for name, path in paths.items():
        write_atomically(path, contents[name].encode())
    return {name: str(path) for name, path in paths.items()}


def show_recommendation(network: "nn.Module", data: "Data", model: Path, *, seed: int, as_json: bool) -> None:
    """Print what the network and its training samples say of its widths and its depth."""
    with waiting(f"looking at {model.name}"):
        advice = look_at(network, data, seed)
        record, text = advice.to_record(), str(advice)
    result = {"model": str(model), "data": data.name, "samples": len(advice.samples), **record}
    emit(result, as_json=as_json, show=lambda _: typer.echo(text))


def look_at(network: "nn.Module", data: "Data", seed: int) -> "Recommendation":
    """Ask for a recommendation by labelled training samples."""
    import torch

    from topiarist.methods.surgeon.surgeon import looked_at
    from topiarist.models.evaluation import numbers_of, placed
    from topiarist.surgery import recommend
    from topiarist.training.inference import first_sample

    sample = placed(torch.cat([first_sample(data.train)] * 2), numbers_of(network))
    samples = looked_at(network, data, seed)
    return recommend(network, sample, calibration=samples.calibration, labels=samples.labels, seed=seed)
