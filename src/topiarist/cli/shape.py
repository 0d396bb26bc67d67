"""`topiarist shape`: give a saved network another shape by a method, to a budget, and say what it cost."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from topiarist.cli import shape_options as option
from topiarist.cli import shape_surgeon
from topiarist.cli.options import AsJson, DataLocation, Group, Into, ModelFile, Seed, Target, given_options
from topiarist.cli.output import console, emit, print_rows, waiting

if TYPE_CHECKING:
    from topiarist.measurement import Budget
    from topiarist.methods import FineTuning, Method, Rewinding, TrainingMethod

SEARCH = ("population", "generations", "judged_on")
OF_METHOD = {
    "distinctiveness": ("published", "angle", "keep", "pairs", "rounds", "multiple_of"),
    "genetic": ("published", "penalty", "fitness", *SEARCH),
    "genetic-front": SEARCH,
    "magnitude": ("published", "sparsity", "bits", "units", "schedule", "scope", "score", "pattern"),
    "factorisation": ("keep",),
    "surgeon": shape_surgeon.OPTIONS,
}
OPTION_OF = {
    "angle_degrees": "--angle",
    "keep_fraction": "--keep",
    "keep": "--keep",
    "file_kb": "--budget",
    "parameters": "--max-parameters",
    "macs": "--max-macs",
    "latency_ms": "--max-latency",
    "max_drop": "--max-drop",
    "epochs": "--finetune",
    "epoch": "--rewind",
    "learning_rate": "--finetune-lr",
    "multiple_of": "--multiple-of",
    "judged_on": "--judged-on",
    "sparsity": "--sparsity",
    "pattern": "--pattern",
}


def shape_command(
    context: typer.Context,
    model: ModelFile,
    data: DataLocation,
    method: option.Method = "distinctiveness",
    published: option.Published = False,
    out: option.Out = None,
    angle: option.Angle = None,
    keep: option.Keep = None,
    pairs: option.Pairs = "in order",
    rounds: option.Rounds = 1,
    multiple_of: option.MultipleOf = 1,
    space: option.Space = None,
    penalty: option.Penalty = 0.0,
    fitness: option.Fitness = "relative",
    judged_on: option.JudgedOn = "held-out",
    population: option.Population = 100,
    generations: option.Generations = None,
    sparsity: option.Sparsity = None,
    bits: option.Bits = "32",
    units: option.Units = False,
    schedule: option.PruningSchedule = "polynomial",
    scope: option.Scope = "layer",
    score: option.WeightScore = "magnitude",
    pattern: option.Pattern = None,
    aim: option.Aim = None,
    kind: option.Kind = None,
    interval: option.Interval = None,
    max_growth: option.MaxGrowth = None,
    stop_at: option.StopAt = None,
    paper: option.Paper = None,
    epochs: option.Epochs = None,
    batch_size: option.BatchSize = None,
    learning_rate: option.LearningRate = None,
    workers: option.SideBySide = None,
    recommend_only: option.RecommendOnly = False,
    size: option.Size = None,
    max_parameters: option.MaxParameters = None,
    max_macs: option.MaxMacs = None,
    max_latency: option.MaxLatency = None,
    max_drop: option.MaxDrop = None,
    finetune: option.Finetune = None,
    finetune_lr: option.FinetuneRate = 0.002,
    distil: option.Distil = None,
    rewind: option.Rewind = None,
    early: option.Early = None,
    target: Target = None,
    group: Group = None,
    into: Into = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Give a trained network the shape it needs, and save what comes out.

    Example: topiarist shape digits.safetensors digits --max-drop 0.01 --finetune 5 --out small.safetensors

    Without an angle, a fraction or a budget, distinctiveness removes only units that are constant or the same as
    another, and the network computes what it did. Magnitude trains the network while it prunes it; its budget is that
    of the packed file: topiarist shape scenes.safetensors clips.npz --method magnitude --budget 500kB --bits 8
    Factorisation makes two thin layers of one, and leaves all units where they are.

    The surgeon trains the network and makes it larger or smaller on the way. Beside the network it writes its record,
    as .lineage.json and as figures, .tree.svg, .topology.svg and .curves.svg; after an interruption, the same command
    with the same --out goes on: topiarist shape digits.safetensors digits --method surgeon --out grown.safetensors
    """
    from topiarist.cli.loading import load_network, task_for
    from topiarist.cli.train_checks import check_out
    from topiarist.cli.train_options import named
    from topiarist.methods import Surgeon, shape
    from topiarist.storage import save

    check_out(out)
    check_belonging(context, method)
    if method == "surgeon":
        shape_surgeon.check_surgeon(given_options(context), out)
    with named(OPTION_OF | (shape_surgeon.OPTION_OF if method == "surgeon" else {})):
        chosen = make_method(context.params, given_options(context))
        budget = make_budget(context.params)
        retraining = make_retraining(context.params)
    network = load_network(model, into)
    start = None if early is None else load_network(early, into)
    samples = task_for(network, data, target=target, group=group)
    if recommend_only:
        shape_surgeon.show_recommendation(network, samples, model, seed=seed, as_json=as_json)
        return
    if isinstance(chosen, Surgeon):
        outcome = shape_surgeon.operate(network, samples, chosen, budget=budget, seed=seed, out=out)
    else:
        with waiting(f"{method} on {model.name}"):
            outcome = shape(network, samples, chosen, budget=budget, retraining=retraining, early=start, seed=seed)
    result = {"model": str(model), "data": samples.name, "method": method, "seed": seed, **outcome.to_json()}
    result["out"] = None if out is None else str(out)
    if out is not None:
        save(outcome.model, out, data=samples)
        if outcome.lineage is not None:
            result["lineage_files"] = shape_surgeon.write_lineage(outcome.lineage, out)
    emit(result, as_json=as_json, show=show_outcome)


def check_belonging(context: typer.Context, method: str) -> None:
    """Refuse options that would have no effect."""
    from topiarist.errors import SettingsError

    given = given_options(context)
    owners = {name: [owner for owner in OF_METHOD if name in OF_METHOD[owner]] for name in given}
    strange = next((name for name, found in owners.items() if found and method not in found), None)
    if strange is not None:
        found = " and ".join(owners[strange])
        raise SettingsError(f"--{strange.replace('_', '-')} belongs to --method {found}, not to {method}")
    if context.params["rounds"] > 1 and not {"finetune", "rewind"} & set(given):
        raise SettingsError("--rounds above 1 needs training between the cuts: add --finetune EPOCHS")
    if "early" in given and "rewind" not in given:
        raise SettingsError("--early belongs to --rewind: say from which epoch on")
    if "rewind" in given and "finetune" in given:
        raise SettingsError("--finetune and --rewind both train the cut network: give one")
    if "distil" in given and not {"finetune", "rewind"} & set(given):
        raise SettingsError("--distil and --no-distil belong to --finetune and --rewind: give one of these")
    if "finetune_lr" in given and "finetune" not in given:
        raise SettingsError("--finetune-lr belongs to --finetune: say for how many epochs")


def make_method(given: Mapping[str, Any], named: Sequence[str]) -> "Method | TrainingMethod":
    """Give the method with its settings; what was not named in the call is left to it where it decides otherwise."""
    from topiarist.errors import SettingsError
    from topiarist.methods import Distinctiveness, Factorisation, Genetic, GeneticFront

    if given["method"] == "surgeon":
        return shape_surgeon.make_surgeon(given, named)
    spaces = tuple(given["space"]) if given["space"] else None
    if spaces is not None and given["method"] in ("magnitude", "factorisation"):
        raise SettingsError(f"--space belongs to the methods that cut units; {given['method']} looks at every kernel")
    if given["method"] == "magnitude":
        return make_magnitude({name: given[name] for name in OF_METHOD["magnitude"] if name in named})
    if given["method"] == "factorisation":
        return Factorisation(keep=given["keep"])
    if given["method"] == "genetic-front":
        return GeneticFront(**{name: given[name] for name in SEARCH if name in named}, spaces=spaces)
    if given["method"] == "genetic":
        return Genetic(**{name: given[name] for name in OF_METHOD["genetic"] if name in named}, spaces=spaces)
    return Distinctiveness(
        angle_degrees=given["angle"],
        keep_fraction=given["keep"],
        spaces=spaces,
        **{name: given[name] for name in ("published", "pairs", "rounds", "multiple_of")},
    )


def make_magnitude(given: Mapping[str, Any]) -> "TrainingMethod":
    """Give pruning while training with its settings."""
    from topiarist.errors import SettingsError
    from topiarist.methods import Magnitude

    settings = dict(given)
    if "bits" in settings:
        settings["bits"] = int(settings["bits"])
    if "pattern" in settings:
        zeros, colon, group = settings["pattern"].partition(":")
        if not (colon and zeros.isdecimal() and group.isdecimal()):
            raise SettingsError(f"a pattern is written like 2:4; found '{settings['pattern']}'", setting="pattern")
        settings["pattern"] = (int(zeros), int(group))
    return Magnitude(**settings)


def make_budget(given: Mapping[str, Any]) -> "Budget | None":
    """Give the budget, None where nothing is limited."""
    from topiarist.measurement import Budget
    from topiarist.measurement.budget import parse_kb

    budget = Budget(
        file_kb=None if given["size"] is None else parse_kb(given["size"]),
        parameters=given["max_parameters"],
        macs=given["max_macs"],
        latency_ms=given["max_latency"],
        max_drop=given["max_drop"],
    )
    return None if budget == Budget() else budget


def make_retraining(given: Mapping[str, Any]) -> "FineTuning | Rewinding | None":
    """Give what follows the cut."""
    from topiarist.methods import FineTuning, Rewinding
    from topiarist.training import Distillation

    if given["finetune"] is not None:
        teacher = None if given["distil"] is False else Distillation()
        return FineTuning(epochs=given["finetune"], learning_rate=given["finetune_lr"], distillation=teacher)
    if given["rewind"] is not None:
        teacher = Distillation() if given["distil"] else None
        return Rewinding(epoch=given["rewind"], weights=given["early"] is not None, distillation=teacher)
    return None


def show_outcome(result: Mapping[str, Any]) -> None:
    """Print what a person wants to know: before and after, side by side."""
    from rich.table import Table

    before, after = result["before"], result["after"]
    print_rows({"model": result["model"], "data": result["data"], "method": result["method"]})
    table = Table(box=None, pad_edge=False)
    for heading in ("", "before", "after", ""):
        table.add_column(heading, justify="right" if heading else "left")
    for row in compared(before, after):
        table.add_row(*row)
    for name, units in result["units"].items():
        table.add_row(f"units of {name}", str(units["before"]), str(units["after"]), "")
    console().print(table)
    rows = {"why": "\n".join(result["reasons"])}
    rows |= {"saved": result["out"]} if result["out"] else {}
    rows |= {"lineage": "\n".join(result["lineage_files"].values())} if "lineage_files" in result else {}
    print_rows(rows)


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Give the rows of the table: a figure, before, after, and what that means."""
    points = 100 * (after["accuracy"] - before["accuracy"])
    return [
        ("accuracy", f"{before['accuracy']:.2%}", f"{after['accuracy']:.2%}", f"{points:+.2f} points"),
        ("parameters", f"{before['parameters']:,}", f"{after['parameters']:,}", times(before, after, "parameters")),
        (
            "not zero",
            f"{before['nonzero']:,}",
            f"{after['nonzero']:,}",
            times(before, after, "nonzero", "fewer", "more"),
        ),
        ("KB on disk", f"{before['file_kb']:.1f}", f"{after['file_kb']:.1f}", times(before, after, "file_kb")),
        ("MACs", f"{before['macs']:,}", f"{after['macs']:,}", times(before, after, "macs")),
        (
            "ms a sample",
            f"{before['latency_ms']:.3f}",
            f"{after['latency_ms']:.3f}",
            times(before, after, "latency_ms", "faster", "slower"),
        ),
    ]


def times(
    before: Mapping[str, Any], after: Mapping[str, Any], name: str, less: str = "smaller", more: str = "larger"
) -> str:
    """Say how many times smaller or faster a network has become, or the opposite."""
    ratio = before[name] / after[name]
    return f"{ratio:.1f} × {less}" if ratio >= 1 else f"{1 / ratio:.1f} × {more}"
