"""The Markdown tables: one of accuracies for each experiment, with means and spreads over seeds, and one of times."""

import math
import statistics
from collections.abc import Callable, Sequence

from benchmarks.compensating.records import Outcome, Results, Timing
from benchmarks.compensating.speed import exponent
from benchmarks.paging.records import Comparison

LEGEND = (
    "Test accuracy in per cent: mean and, in brackets, standard deviation over the seeds. *Refit*: with unlabelled "
    "calibration samples; for torch-pruning, whose method has none, batch norms measured anew on them. *Settled*: "
    "moved towards the whole network's answers, also without labels. *Labels*: then trained with labels, "
    "ours with the whole network as a teacher beside them, rivals with labels alone. "
    "Seconds are the processor's: of allotting the widths, of the choice with the refit, of settling, and of a forward "
    "pass of the calibration samples."
)
MISSING = "–"
OURS = "ours"
AIMS = {  # points that ours may lose without labels: what we set out for before it was measured
    ("lenet300", "90% free"): 1.95,
    ("vit", "half of heads and hidden units"): 1.5,
    ("lstm", "half of hidden units"): 1.5,
    ("digits", "6570 parameters"): 0.2,
    ("digits", "3411 parameters"): 0.5,
}


def write_markdown(results: Results) -> str:
    """Return all tables, what they mean, and what they were measured with."""
    parts = [LEGEND] if results.outcomes else []
    for name in dict.fromkeys(outcome.experiment for outcome in results.outcomes):
        outcomes = [outcome for outcome in results.outcomes if outcome.experiment == name]
        parts += [f"### {name}", f"Dense: {mean_and_spread(dense_accuracies(outcomes))}.", outcome_table(outcomes)]
    if results.timings:
        parts += ["### Time", timing_table(results.timings), *exponents(results.timings)]
    return "\n\n".join(parts)


def pieces(results: Results) -> dict[str, str]:
    """Return all tables by name."""
    return {"tables": write_markdown(results)}


def compare(results: Results) -> list[Comparison]:
    """Return ours beside every other way, by what is left without labels."""
    found = []
    keys = dict.fromkeys((each.experiment, each.setting) for each in results.outcomes)
    for experiment, setting in keys:
        own = [each for each in results.outcomes if (each.experiment, each.setting) == (experiment, setting)]
        by_method = {name: left_accuracies(own, name) for name in dict.fromkeys(each.method for each in own)}
        ours = by_method.pop(OURS, {})
        for method, theirs in by_method.items():
            seeds = [seed for seed in ours if seed in theirs]
            if seeds:
                gaps = [ours[seed] - theirs[seed] for seed in seeds]
                found.append(
                    Comparison(
                        case=f"{experiment}, {setting}",
                        measure="accuracy without labels, %",
                        better="more",
                        ours=statistics.mean(ours[seed] for seed in seeds),
                        theirs=statistics.mean(theirs[seed] for seed in seeds),
                        rival=method,
                        spread=statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None,
                    )
                )
    return [*found, *aims(results)]


def aims(results: Results) -> list[Comparison]:
    """Return what ours loses beside the points that we set out to lose at most."""
    found = []
    for (experiment, setting), most in AIMS.items():
        own = [
            each
            for each in results.outcomes
            if (each.experiment, each.setting, each.method) == (experiment, setting, OURS)
        ]
        lost = [each.dense - left for each in own if (left := accuracy_left(each)) is not None]
        if lost:
            found.append(
                Comparison(
                    case=f"{experiment}, {setting}",
                    measure="points lost without labels",
                    better="less",
                    ours=statistics.mean(lost),
                    theirs=most,
                    rival="our aim",
                    aim=True,
                )
            )
    return found


def left_accuracies(outcomes: Sequence[Outcome], method: str) -> dict[int, float]:
    """Return, for each seed, what one way leaves without labels."""
    left = {each.seed: accuracy_left(each) for each in outcomes if each.method == method}
    return {seed: value for seed, value in left.items() if value is not None}


def accuracy_left(outcome: Outcome) -> float | None:
    """Return the accuracy without labels, at the last stage that there is."""
    stages = (outcome.settled, outcome.refitted, outcome.cut)
    return next((stage for stage in stages if stage is not None), None)


def dense_accuracies(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the accuracy of the whole network of each seed."""
    return list({outcome.seed: outcome.dense for outcome in outcomes}.values())


def outcome_table(outcomes: Sequence[Outcome]) -> str:
    """Return a line per setting and method; columns that none of them has are left out."""
    keys = dict.fromkeys((outcome.setting, outcome.method) for outcome in outcomes)
    lines = [outcome_line([each for each in outcomes if (each.setting, each.method) == key]) for key in keys]
    filled = [name for name in lines[0] if any(line[name] not in ("", MISSING) for line in lines)]
    return markdown([{name: line[name] for name in filled} for line in lines])


def outcome_line(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the cells of one setting and method."""

    def cell(read: Callable[[Outcome], float | None]) -> str:
        return mean_and_spread([value for value in map(read, outcomes) if value is not None])

    def seconds(read: Callable[[Outcome], float | None]) -> str:
        found = [value for value in map(read, outcomes) if value is not None]
        return f"{statistics.mean(found):.2f}" if found else MISSING

    sizes = [outcome.parameters for outcome in outcomes if outcome.parameters is not None]
    return {
        "setting": outcomes[0].setting,
        "parameters": f"{statistics.mean(sizes):,.0f}" if sizes else MISSING,
        "method": outcomes[0].method,
        "seeds": str(len({outcome.seed for outcome in outcomes})),
        "as cut": cell(lambda outcome: outcome.cut),
        "refit": cell(lambda outcome: outcome.refitted),
        "settled": cell(lambda outcome: outcome.settled),
        "labels": cell(lambda outcome: outcome.labelled),
        "lost": lost(outcomes),
        "s allotting": seconds(lambda outcome: outcome.allotting_seconds),
        "s cut": seconds(lambda outcome: outcome.cut_seconds),
        "s settling": seconds(lambda outcome: outcome.settling_seconds),
        "s forward": seconds(lambda outcome: outcome.forward_seconds),
        "why not": next((outcome.reason.replace("|", "\\|") for outcome in outcomes if outcome.reason), ""),
    }


def lost(outcomes: Sequence[Outcome]) -> str:
    """Return the points below dense without labels, at the last stage that there is."""
    left = [(outcome.dense, accuracy_left(outcome)) for outcome in outcomes]
    return mean_and_spread([dense - value for dense, value in left if value is not None])


def mean_and_spread(values: Sequence[float]) -> str:
    """Return the mean, with the standard deviation where there are several."""
    if not values:
        return MISSING
    spread = f" ({statistics.stdev(values):.2f})" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def timing_table(timings: Sequence[Timing]) -> str:
    """Return a line per network and number of images."""
    return markdown(
        [
            {
                "network": timing.network,
                "convolutions": str(timing.layers),
                "parameters": f"{timing.parameters:,}",
                "images": str(timing.images),
                "forward, s": f"{timing.forward_seconds:.2f}",
                "refit, s": f"{timing.refit_seconds:.2f}",
                "refit / forward": f"{timing.refit_seconds / timing.forward_seconds:.1f}",
                "choice and refit, s": MISSING if timing.choice_seconds is None else f"{timing.choice_seconds:.2f}",
            }
            for timing in timings
        ]
    )


def exponents(timings: Sequence[Timing]) -> list[str]:
    """Return the exponents of the time in depth and in samples, where there are several of each."""
    deep = [timing for timing in timings if timing.network.startswith("depth")]
    many = [timing for timing in timings if timing.network.endswith("images")]
    measured = (
        ("depth", [(timing.layers, timing.refit_seconds) for timing in deep]),
        ("samples", [(timing.images, timing.refit_seconds) for timing in many]),
    )
    found = []
    for what, pairs in measured:
        if len(pairs) > 1:
            power = exponent([size for size, _ in pairs], [seconds for _, seconds in pairs])
            found.append(f"Exponent of the refit's time in {what}: {power:.2f}.")
    return found


def markdown(lines: Sequence[dict[str, str]]) -> str:
    """Return lines of cells as a table."""
    rows = [list(lines[0]), ["---"] * len(lines[0]), *(list(line.values()) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
