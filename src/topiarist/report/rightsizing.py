"""The report of a right-sizing as one page: the verdict first, then what it rests on, then how to repeat it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from topiarist.errors import DataError
from topiarist.report.page import render
from topiarist.report.rightsizing_confusion import confused_pairs, heat_map
from topiarist.report.rightsizing_figures import bounds_of, curves_of, lineage_figures, small_curve
from topiarist.report.rightsizing_front import AXES, front_figure
from topiarist.report.rightsizing_quotes import Record, look_up, quote
from topiarist.report.rightsizing_tables import comparison_table, leaves, networks_table, rungs_table
from topiarist.report.svg import embed
from topiarist.report.wording import required

PARTS = {
    "front": "Accuracy against size",
    "comparison": "Before and after",
    "widths": "Layers",
    "networks": "All networks",
    "curves": "Learning curves",
    "lineage": "The Surgeon's lineage",
    "confusion": "Confusions",
    "statistics": "Statistics",
    "repeating": "To repeat it",
}
REPEATING = {
    "settings": "Settings",
    "plan": "Plan",
    "data": "Data",
    "exports": "Files beside this page",
    "seconds": "Seconds it took",
    "versions": "Versions",
}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The figures of the page; a part without any is left out where there is nothing else to say."""

    fronts: dict[str, Markup]
    curves: list[Markup]
    lineages: list[tuple[str, list[Markup]]]
    bounds: list[Markup]
    small: list[dict[str, Markup | None]]


def rightsizing_page(record: Record) -> str:
    """Give the page of a right-sizing; every number on it is quoted from the record, with its place there."""
    networks = required(record, "networks")
    if not networks:
        raise DataError("a report of a right-sizing needs at least the baseline: the record has no network")
    cards = {network["id"]: place for place, network in enumerate(networks)}
    chosen = cards.get(look_up(record, "verdict.chosen"), 0)
    before, after = "networks.0", f"networks.{chosen}"
    drawn = draw_all(record, chosen)
    maps = [(side, squares) for side in ("before", "after") if (squares := heat_map(record, side))]
    pairs = confused_pairs(record)
    empty = {
        "front": not drawn.fronts,
        "widths": not look_up(record, f"{after}.layers"),
        "lineage": not drawn.lineages,
        "confusion": not maps and pairs is None,
    }
    return render(
        "rightsizing.html.j2",
        scripts=("sort.js", "scroll.js", "rightsizing.js"),
        title=f"Right-sizing: {look_up(record, 'data.name')}",
        record=record,
        quote=partial(quote, record),
        look=partial(look_up, record),
        parts={name: title for name, title in titles(changed=chosen != 0).items() if not empty.get(name)},
        before=before,
        after=after,
        changed=chosen != 0,
        chosen=chosen,
        cards=cards,
        drawn=drawn,
        axes=AXES,
        comparison=comparison_table(record, before, after),
        networks=networks_table(record, chosen),
        rungs=rungs_table(record),
        maps=maps,
        pairs=pairs,
        repeating={title: leaves(record, path) for path, title in REPEATING.items()},
    )


def titles(*, changed: bool) -> dict[str, str]:
    """Give the headings of the parts, in their order."""
    return PARTS if changed else PARTS | {"comparison": "The baseline in figures"}


def draw_all(record: Record, chosen: int) -> Drawn:
    """Draw every figure, the names inside them distinct over the whole page."""
    networks = record["networks"]
    numbers = itertools.count()

    def embedded(svg: str) -> Markup:
        return Markup(embed(svg, prefix=f"figure-{next(numbers)}-"))

    compared = [networks[place] for place in sorted({0, chosen})]
    bounds = bounds_of(record)
    return Drawn(
        fronts={axis: embedded(svg) for axis, svg in fronts_of(record)},
        curves=[embedded(svg) for svg in curves_of(compared)],
        lineages=[
            (f"networks.{place}", [embedded(svg) for svg in lineage_figures(network["lineage"])])
            for place, network in enumerate(networks)
            if network.get("lineage")
        ],
        bounds=[] if bounds is None else [embedded(bounds)],
        small=[
            {
                "accuracy": small_curve(network, "validation_accuracy"),
                "loss": small_curve(network, "training_loss", "validation_loss"),
            }
            for network in networks
        ],
    )


def fronts_of(record: Record) -> Iterator[tuple[str, str]]:
    """Draw accuracy against every kind of size that is known."""
    for axis in AXES:
        svg = front_figure(record, axis)
        if svg is not None:
            yield axis, svg
