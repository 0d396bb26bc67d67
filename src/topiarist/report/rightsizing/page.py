"""The report of a rightsizing as one page: the verdict first, then what it rests on, then how to repeat it."""

import itertools
from dataclasses import dataclass

from markupsafe import Markup

from topiarist.report.page import render
from topiarist.report.rightsizing.figures import bounds_of, curves_of, lineage_figures, small_curve
from topiarist.report.rightsizing.front import AXES, front_figure
from topiarist.report.rightsizing.quotes import Quotes
from topiarist.report.rightsizing.tables import (
    NOTED,
    calibration_table,
    columns_table,
    comparison_table,
    confused_pairs,
    each_table,
    few_samples,
    heat_map,
    leaves,
    networks_table,
    proofs_table,
    references_table,
    rungs_table,
)
from topiarist.report.svg import embed
from topiarist.report.wording import capitalised
from topiarist.rightsizing.record import RightsizingRecord

PARTS = {
    "front": "{metric} against size",
    "comparison": "Before and after",
    "references": "Beside simple models",
    "widths": "Layers",
    "networks": "All networks",
    "curves": "Learning curves",
    "lineage": "The Surgeon's lineage",
    "confusion": "Confusions",
    "each": "{metric} one by one",
    "calibration": "Probabilities",
    "statistics": "Statistics",
    "reading": "How the data were read",
    "columns": "Columns of the table",
    "repeating": "To repeat it",
}
_REPEATING = {
    "task": "Task",
    "settings": "Settings",
    "plan": "Plan",
    "data": "Data",
    "exports": "Files beside this page",
    "seconds": "Seconds it took",
    "versions": "Versions",
}


@dataclass(frozen=True, kw_only=True)
class PageFigures:
    """The figures of the page; a part without any is left out where there is nothing else to show."""

    fronts: dict[str, Markup]
    narrow: Markup | None = None
    curves: list[Markup]
    lineages: list[tuple[str, list[Markup]]]
    bounds: list[Markup]
    small: list[dict[str, Markup | None]]


def rightsizing_page(record: RightsizingRecord) -> str:
    """Return the page of a rightsizing; every number on it is quoted from the record, with its place there."""
    quotes = Quotes(record)
    cards = {network.id: place for place, network in enumerate(record.networks)}
    chosen = cards[record.verdict.chosen]
    before, after = "networks.0", f"networks.{chosen}"
    tested = [rung.network for rung in record.decision.rungs]
    rung = f"decision.rungs.{tested.index(record.verdict.chosen)}" if record.verdict.chosen in tested else None
    drawn = _draw_all(record, chosen)
    sides = ("before", "after") if chosen else ("before",)
    maps = [(side, squares) for side in sides if (squares := heat_map(quotes, side))]
    pairs = confused_pairs(quotes, sides)
    titles = PARTS if chosen else PARTS | {"comparison": "The baseline in figures"}
    titles = {name: title.format(metric=capitalised(record.metric.title)) for name, title in titles.items()}
    parts_of_task = each_table(quotes, sides)
    empty = {
        "front": not drawn.fronts,
        "widths": not record.networks[chosen].layers,
        "lineage": not drawn.lineages,
        "confusion": not maps and pairs is None,
        "each": parts_of_task is None,
        "calibration": record.calibration is None,
        "reading": not record.data.notes,
        "columns": not record.data.columns,
        "references": not record.references,
    }
    return render(
        "rightsizing.html.j2",
        scripts=("sort.js", "scroll.js", "rightsizing.js"),
        title=f"Rightsizing: {record.data.name}",
        record=record,
        quote=quotes.quote,
        look=quotes.look,
        parts={name: title for name, title in titles.items() if not empty.get(name)},
        before=before,
        after=after,
        changed=chosen != 0,
        relearned=_relearned(record),
        rung=rung,
        proofs=proofs_table(quotes, rung),
        noted=[
            *(f"plan.left_out.{n}" for n in range(len(record.plan.left_out))),
            *(["plan.cut_short"] if record.plan.cut_short else []),
            *(f"plan.notes.{n}" for n in range(len(record.plan.notes))),
        ],
        chosen=chosen,
        cards=cards,
        drawn=drawn,
        axes=AXES,
        forms=quotes.forms,
        title_of=capitalised,
        each=parts_of_task,
        calibration=calibration_table(quotes),
        few=few_samples(quotes),
        comparison=comparison_table(quotes, before, after),
        networks=networks_table(quotes, chosen),
        rungs=rungs_table(quotes),
        columns=columns_table(quotes),
        references=references_table(quotes, chosen),
        maps=maps,
        pairs=pairs,
        repeating={title: leaves(quotes, path, without=NOTED) for path, title in _REPEATING.items()},
    )


def _relearned(record: RightsizingRecord) -> str:
    """Return which of the two networks that are handed out learned once more; nothing where none did."""
    before, after = record.networks[0].relearned, record.chosen.relearned
    if before and after:
        return "both"
    return "the smaller one" if after else "the baseline" if before else ""


def _draw_all(record: RightsizingRecord, chosen: int) -> PageFigures:
    """Return every figure, the names inside them distinct over the whole page."""
    networks, numbers = record.networks, itertools.count()

    def embedded(svg: str) -> Markup:
        return Markup(embed(svg, prefix=f"figure-{next(numbers)}-"))

    fronts = {axis: front_figure(record, axis) for axis in AXES}
    narrow = front_figure(record, next(iter(AXES)), narrow=True)
    bounds = bounds_of(record)
    return PageFigures(
        fronts={axis: embedded(svg) for axis, svg in fronts.items() if svg is not None},
        narrow=None if narrow is None else embedded(narrow),
        curves=[
            embedded(svg) for svg in curves_of([networks[place] for place in sorted({0, chosen})], record.metric.title)
        ],
        lineages=[
            (f"networks.{place}", [embedded(svg) for svg in lineage_figures(network.lineage)])
            for place, network in enumerate(networks)
            if network.lineage is not None
        ],
        bounds=[] if bounds is None else [embedded(bounds)],
        small=[
            {
                "score": small_curve(network, "validation_score"),
                "loss": small_curve(network, "training_loss", "validation_loss"),
            }
            for network in networks
        ],
    )
