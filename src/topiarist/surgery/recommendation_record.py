"""A recommendation as plain records, and as tables to read."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topiarist.surgery.layer_damage import Factorising, Folding
from topiarist.surgery.sensitivity import Removal
from topiarist.surgery.spectra import count_negligible

if TYPE_CHECKING:
    from topiarist.surgery.recommendation import Recommendation

Cell = str | int | float | None
Table = list[dict[str, Cell]]


def record_of(seen: "Recommendation", *, measured: bool) -> dict[str, Any]:
    """Give all that a recommendation has to say as what JSON is made of."""
    return {
        "parameters": seen.parameters,
        "seed": seen.seed,
        **({"loss": seen.loss} if measured else {}),
        "spaces": {name: space_record(seen, name, measured=measured) for name in seen.spaces},
        "layers": {name: layer_record(seen, name, measured=measured) for name in seen.layers},
    }


def space_record(seen: "Recommendation", name: str, *, measured: bool) -> dict[str, Any]:
    """Give what is known of a space."""
    growth = seen.growth(name)
    return {
        "units": seen.spaces[name],
        **listed(asdict(seen.activations(name))),
        **listed(asdict(seen.health(name))),
        "removals": [option_record(removal) for removal in seen.removals(name, measured=measured)],
        "growth": {
            "by": growth.edit.by,
            "gain": growth.gain,
            "existing_gain": growth.existing_gain,
            "relative_gain": growth.relative_gain,
            "parameters": growth.parameters,
        },
    }


def layer_record(seen: "Recommendation", name: str, *, measured: bool) -> dict[str, Any]:
    """Give what is known of a layer; the layers that give the output have no scores."""
    spectrum, units = seen.weights(name), len(seen.weight(name))
    scores = seen.scores.get(name)
    folding = seen.folding(name, measured=measured)
    return {
        "units": units,
        **listed(asdict(spectrum)),
        "negligible": count_negligible(spectrum.singular_values, units),
        "scores": None if scores is None else asdict(scores),
        "folding": None if folding is None else option_record(folding),
        "factorisings": [option_record(option) for option in seen.factorisings(name, measured=measured)],
    }


def option_record(option: Removal | Folding | Factorising) -> dict[str, Any]:
    """Give an edit that could be made, and what it would do."""
    own = {key: value for key, value in vars(option).items() if key != "edit"}
    return {"edit": option.edit.model_dump(mode="json"), **listed(own)}


def listed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Give values with lists in the place of tuples, as JSON has them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def tables_of(seen: "Recommendation", *, measured: bool) -> dict[str, Table]:
    """Give one row a space, and one row a layer."""
    return {
        "spaces": [space_row(seen, name, measured=measured) for name in seen.spaces],
        "layers": [layer_row(seen, name, measured=measured) for name in seen.layers],
    }


def space_row(seen: "Recommendation", name: str, *, measured: bool) -> dict[str, Cell]:
    """Give what a table says of a space."""
    health, removals = seen.health(name), seen.removals(name, measured=measured)
    at = {removal.share: removal for removal in removals}
    lost: dict[str, Cell] = {f"lost at −{share:.0%}": at[share].lost if share in at else None for share in seen.shares}
    more: dict[str, Cell] = {
        f"loss at −{share:.0%}": at[share].increase if share in at else None for share in seen.shares
    }
    return {
        "space": name,
        "units": seen.spaces[name],
        "effective rank": seen.activations(name).effective_rank,
        "dead": len(health.dead),
        "saturated": len(health.saturated),
        **lost,
        **(more if measured else {}),
        "gain of growth": seen.growth(name).relative_gain,
    }


def layer_row(seen: "Recommendation", name: str, *, measured: bool) -> dict[str, Cell]:
    """Give what a table says of a layer."""
    scores, folding = seen.scores.get(name), seen.folding(name, measured=measured)
    factorisings = seen.factorisings(name, measured=measured)
    ranks: dict[str, Cell] = {f"rank for {option.keep:.0%}": option.edit.rank for option in factorisings}
    more: dict[str, Cell] = {f"loss at rank for {option.keep:.0%}": option.increase for option in factorisings}
    return {
        "layer": name,
        "units": len(seen.weight(name)),
        "effective rank": seen.weights(name).effective_rank,
        "negligible": count_negligible(seen.weights(name).singular_values, len(seen.weight(name))),
        "add neurons": None if scores is None else scores.add_neurons,
        "add layer": None if scores is None else scores.add_layer,
        "remove neurons": None if scores is None else scores.remove_neurons,
        "remove layer": None if scores is None else scores.remove_layer,
        "lost if folded": None if folding is None else folding.lost,
        **({"loss if folded": None if folding is None else folding.increase} if measured else {}),
        **ranks,
        **(more if measured else {}),
    }


def rendered(tables: Mapping[str, Table]) -> str:
    """Give tables as text, one after the other; those without rows are left out."""
    return "\n\n".join(aligned(table) for table in tables.values() if table) or "nothing to recommend"


def aligned(table: Table) -> str:
    """Give one line a row, below the headings."""
    headings = list(dict.fromkeys(heading for row in table for heading in row))
    lines = [headings, *([shown(row.get(heading)) for heading in headings] for row in table)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def shown(cell: Cell) -> str:
    """Give a cell as text: numbers with three digits, nothing as a dash."""
    if cell is None:
        return "-"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
