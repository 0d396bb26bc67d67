"""A recommendation as plain records, and as tables to read."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from topiarist.files import JsonObject
from topiarist.surgery.advice.options import Factorising, Folding, Removal
from topiarist.surgery.advice.spectra import count_negligible
from topiarist.tracing.table import aligned

if TYPE_CHECKING:
    from topiarist.surgery.advice.recommendation import Recommendation

Cell = str | int | float | None
Table = list[dict[str, Cell]]


def record_of(seen: "Recommendation", *, measured: bool) -> JsonObject:
    """Return all that a recommendation has to say as what JSON is made of."""
    record: dict[str, object] = {"parameters": seen.parameters, "seed": seen.seed}
    if measured:
        record["loss"] = seen.loss
    record["spaces"] = {name: _space_record(seen, name, measured) for name in seen.spaces}
    record["layers"] = {name: _layer_record(seen, name, measured) for name in seen.layers}
    plain: JsonObject = json.loads(json.dumps(record))  # lists in the place of tuples
    return plain


def _space_record(seen: "Recommendation", name: str, measured: bool) -> dict[str, object]:
    growth = seen.growth(name)
    gains = ("gain", "existing_gain", "relative_gain", "parameters")
    return {
        "units": seen.spaces[name],
        **asdict(seen.activations(name)),
        **asdict(seen.health(name)),
        "removals": [_option_record(removal) for removal in seen.removals(name, measured=measured)],
        "growth": {"by": growth.edit.by, **{gain: getattr(growth, gain) for gain in gains}},
    }


def _layer_record(seen: "Recommendation", name: str, measured: bool) -> dict[str, object]:
    """Return what is known of a layer; the layers that return the output have no scores."""
    spectrum, units = seen.weights(name), len(seen.weight(name))
    scores = seen.scores.get(name)
    folding = seen.folding(name, measured=measured)
    return {
        "units": units,
        **asdict(spectrum),
        "negligible": count_negligible(spectrum.singular_values, units),
        "scores": None if scores is None else asdict(scores),
        "folding": None if folding is None else _option_record(folding),
        "factorisings": [_option_record(option) for option in seen.factorisings(name, measured=measured)],
    }


def _option_record(option: Removal | Folding | Factorising) -> dict[str, object]:
    own = {name: value for name, value in vars(option).items() if name != "edit"}
    return {"edit": option.edit.model_dump(mode="json"), **own}


def tables_of(seen: "Recommendation", *, measured: bool) -> dict[str, Table]:
    """Return one row per space, and one row per layer."""
    return {
        "spaces": [_space_row(seen, name, measured) for name in seen.spaces],
        "layers": [_layer_row(seen, name, measured) for name in seen.layers],
    }


def _space_row(seen: "Recommendation", name: str, measured: bool) -> dict[str, Cell]:
    health = seen.health(name)
    at = {removal.share: removal for removal in seen.removals(name, measured=measured)}
    row: dict[str, Cell] = {
        "space": name,
        "units": seen.spaces[name],
        "effective rank": seen.activations(name).effective_rank,
        "dead": len(health.dead),
        "saturated": len(health.saturated),
        **{f"lost at −{share:.0%}": at[share].lost if share in at else None for share in seen.shares},
    }
    if measured:
        row |= {f"loss at −{share:.0%}": at[share].increase if share in at else None for share in seen.shares}
    return {**row, "gain of growth": seen.growth(name).relative_gain}


def _layer_row(seen: "Recommendation", name: str, measured: bool) -> dict[str, Cell]:
    spectrum, units = seen.weights(name), len(seen.weight(name))
    scores, folding = seen.scores.get(name), seen.folding(name, measured=measured)
    factorisings = seen.factorisings(name, measured=measured)
    scored = ("add_neurons", "add_layer", "remove_neurons", "remove_layer")
    row: dict[str, Cell] = {
        "layer": name,
        "units": units,
        "effective rank": spectrum.effective_rank,
        "negligible": count_negligible(spectrum.singular_values, units),
        **{score.replace("_", " "): getattr(scores, score, None) for score in scored},
        "lost if folded": None if folding is None else folding.lost,
    }
    if measured:
        row["loss if folded"] = None if folding is None else folding.increase
    row |= {f"rank for {option.keep:.0%}": option.edit.rank for option in factorisings}
    if measured:
        row |= {f"loss at rank for {option.keep:.0%}": option.increase for option in factorisings}
    return row


def rendered(tables: Mapping[str, Table]) -> str:
    """Return tables as text, one after the other; those without rows are left out."""
    texts = []
    for table in filter(None, tables.values()):
        headings = list(dict.fromkeys(heading for row in table for heading in row))
        texts.append("\n".join(aligned([headings, *([_shown(row.get(name)) for name in headings] for row in table)])))
    return "\n\n".join(texts) or "nothing to recommend"


def _shown(cell: Cell) -> str:
    """Return a cell as text: numbers with three digits, nothing as a dash."""
    if cell is None:
        return "-"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
