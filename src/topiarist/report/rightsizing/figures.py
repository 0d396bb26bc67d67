"""The figures of a rightsizing beside the front: learning curves, bounds, lineages."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from topiarist.evolution.lineage import Lineage
from topiarist.report.curves import Run, Scale, learning_curves
from topiarist.report.forest import Difference, lower_bounds
from topiarist.report.lineage import lineage_curves, lineage_tree, topology_over_time
from topiarist.report.rightsizing.quotes import is_number
from topiarist.report.wording import as_number, capitalised
from topiarist.rightsizing.record import NetworkRecord, RightsizingRecord

_PERCENT = 100
_WIDE, _HIGH, _EDGE = 240.0, 56.0, 3.0


def curves_of(networks: Sequence[NetworkRecord], metric: str) -> Iterator[str]:
    """Yield how metric and loss of some networks went, epoch by epoch; nothing where no epoch is known."""
    wanted: tuple[tuple[str, str, Scale], ...] = (
        ("validation_score", metric, "linear"),
        ("validation_loss", "loss", "log"),
    )
    for field, word, scale in wanted:
        runs = {network.name: _run_of(network, field) for network in networks}
        if any(is_number(value) for run in runs.values() for value in run):
            curves = {name: [run] for name, run in runs.items()}
            title = f"{capitalised(word)} on the validation part"
            yield learning_curves(curves, title=title, y_label=f"validation {word}", y_scale=scale)


def _run_of(network: NetworkRecord, field: str) -> Run:
    """Return the values of a curve by their epochs, from 1 on, with None for a gap."""
    values = {point.epoch: getattr(point, field) for point in network.curve}
    return [values.get(epoch) for epoch in range(1, 1 + max(values, default=0))]


def bounds_of(record: RightsizingRecord) -> str | None:
    """Return the difference and the lower bound of every size; None where there is none."""
    metric = record.compared
    scale, unit = (_PERCENT, "points of ") if metric.share else (_PERCENT, "% of the ") if metric.relative else (1, "")
    names = {network.id: network.name for network in record.networks}
    rows = [
        Difference(
            name=names.get(rung.network, rung.network),
            difference=scale * rung.difference,
            low=scale * rung.low,
            significant=rung.verdict == "proven",
        )
        for rung in record.decision.rungs
    ]
    margin = scale * record.settings.max_drop
    if not rows:
        return None
    title = f"{capitalised(metric.title)} against the baseline"
    return lower_bounds(rows, title=title, unit=f"{unit}{metric.title}", margin=margin)


def lineage_figures(lineage: Lineage) -> Iterator[str]:
    """Yield the figures of a lineage: its topologies, its scores where there are any, its tree."""
    yield topology_over_time(lineage)
    if any(node.points for node in lineage.nodes):
        yield lineage_curves(lineage)
    yield lineage_tree(lineage)


def small_curve(network: NetworkRecord, *fields: str) -> Markup | None:
    """Return some columns of a curve without axes, from the least to the largest value; None where there is nothing."""
    runs = [[(x, as_number(y)) for x, y in enumerate(_run_of(network, field)) if is_number(y)] for field in fields]
    places = [place for run in runs for place in run]
    if not places:
        return None
    right, low, high = max(x for x, _ in places), min(y for _, y in places), max(y for _, y in places)

    def spot(x: float, y: float) -> str:
        across = _EDGE + (_WIDE - 2 * _EDGE) * (x / right if right else 0.5)
        return f"{across:.1f} {_EDGE + (_HIGH - 2 * _EDGE) * ((high - y) / (high - low) if high > low else 0.5):.1f}"

    lines = Markup().join(
        Markup('<path class="line-{}" d="M{} h0"/>').format(number, "L".join(spot(x, y) for x, y in run))
        for number, run in enumerate(runs)
        if run
    )
    head = Markup('<svg class="small-curve" viewBox="0 0 {:.0f} {:.0f}" aria-hidden="true">').format(_WIDE, _HIGH)
    return head + lines + Markup("</svg>")
