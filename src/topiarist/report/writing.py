"""Writes reports: the record of a rightsizing as a page and as JSON, and a lineage as figures."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from topiarist.errors import DataError
from topiarist.evolution.lineage import Lineage
from topiarist.files import check_readable, parse_json, write_atomically
from topiarist.report.lineage import lineage_curves, lineage_tree, topology_over_time
from topiarist.report.rightsizing import rightsizing_page
from topiarist.report.rightsizing.side_by_side import side_by_side_page
from topiarist.rightsizing.record import VERSION, RightsizingRecord
from topiarist.rightsizing.wording import sentence, why_of

LARGEST_RECORD = 2**28  # bytes: a hundred times the largest record of ours
PAGE_FILE, RECORD_FILE, COMPARISON_FILE = "report.html", "result.json", "comparison.html"
LINEAGE_ENDINGS = {
    "lineage": ".lineage.json",
    "tree": ".tree.svg",
    "topology": ".topology.svg",
    "curves": ".curves.svg",
}


def write_report(record: RightsizingRecord, folder: str | Path) -> Path:
    """Write `report.html` and `result.json` into a folder.

    Parameters
    ----------
    record : RightsizingRecord
        That of a `Rightsizing`, or what `deliver` returned.
    folder : path
        Made where it is not there.

    Returns
    -------
    Path
        The page.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    page = rightsizing_page(record)
    write_atomically(place / RECORD_FILE, json.dumps(record.to_json(), indent=1, allow_nan=False).encode())
    write_atomically(place / PAGE_FILE, page.encode())
    return place / PAGE_FILE


def write_comparison(records: Sequence[RightsizingRecord], names: Sequence[str], folder: str | Path) -> Path:
    """Write `comparison.html`, on which several results stand side by side, into a folder; return the page."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    write_atomically(place / COMPARISON_FILE, side_by_side_page(records, names).encode())
    return place / COMPARISON_FILE


def read_record(place: Path) -> RightsizingRecord:
    """Read a record that `write_report` wrote; raise DataError in one line where it is none."""
    check_readable(place, most=LARGEST_RECORD)
    try:
        found = parse_json(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"cannot read {place}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {place}: it is not JSON ({error})") from error
    if not isinstance(found, dict) or not isinstance(found.get("networks"), list):
        raise DataError(f"{place} is not the record of a rightsizing")
    version = found.get("version", found.get("format"))
    if version != VERSION:
        which = "without a version" if version is None else f"of version {version}"
        raise DataError(f"{place} is a record {which}; this topiarist reads version {VERSION}: run again")
    try:
        record = RightsizingRecord.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = (
            "there is no such field"
            if first["type"] == "extra_forbidden"
            else first["msg"].removeprefix("Value error, ")
        )
        where = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] else ""
        raise DataError(f"{place} is not a whole record of a rightsizing: {where}{what}") from error
    if (record.verdict.sentence, record.verdict.why) != (sentence(record), why_of(record)):
        raise DataError(f"{place} is not a record of ours: its sentence does not follow from its figures")
    return record


def lineage_paths(out: Path) -> dict[str, Path]:
    """Return the files beside a network that show how it came about."""
    return {name: out.with_name(f"{out.stem}{ending}") for name, ending in LINEAGE_ENDINGS.items()}


def write_lineage(lineage: Lineage, out: Path) -> dict[str, str]:
    """Write a lineage as JSON and as figures beside a network, and return the paths; no curves without accuracies."""
    contents = {
        "lineage": f"{json.dumps(lineage.to_record(), indent=1)}\n",
        "tree": lineage_tree(lineage),
        "topology": topology_over_time(lineage),
    }
    if any(node.accuracy is not None or node.points for node in lineage.nodes):
        contents["curves"] = lineage_curves(lineage)
    paths = {name: path for name, path in lineage_paths(out).items() if name in contents}
    for name, path in paths.items():
        write_atomically(path, contents[name].encode())
    return {name: str(path) for name, path in paths.items()}
