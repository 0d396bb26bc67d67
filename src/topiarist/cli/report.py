"""`topiarist report`: the page of a rightsizing, made again from its record."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from topiarist.cli.options import AsJson
from topiarist.cli.output import emit
from topiarist.errors import DataError


def report_command(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A result.json, or the folder that holds it.")],
    out: Annotated[Path | None, typer.Option("--out", help="The folder for the page.  [default: the record's]")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the page of a rightsizing again, from its record.

    Example: topiarist report rightsized
    """
    from topiarist.report.writing import RECORD_FILE, write_report

    place = record / RECORD_FILE if record.is_dir() else record
    page = write_report(read_record(place), place.parent if out is None else out)
    emit({"report": str(page)}, as_json=as_json, show=lambda result: typer.echo(result["report"]))


def read_record(place: Path) -> dict[str, Any]:
    """Read a record, or say in one line why it is none."""
    try:
        record = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"cannot read {place}: there is no such file") from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {place}: it is no JSON ({error})") from error
    if not isinstance(record, dict) or not isinstance(record.get("networks"), list):
        raise DataError(f"{place} is not the record of a rightsizing")
    return record
