"""`topiarist report`: the page of a rightsizing, made again from its record."""

from pathlib import Path
from typing import Annotated

import typer

from topiarist.cli.options import AsJson
from topiarist.cli.output import emit, say


def report_command(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A result.json, or the folder that holds it.")],
    out: Annotated[Path | None, typer.Option("--out", help="The folder for the page.  [default: the record's]")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the page of a rightsizing again, from its record.

    Example: topiarist report rightsized
    """
    from topiarist.files import check_folder
    from topiarist.report.writing import PAGE_FILE, RECORD_FILE, read_record, write_report

    place = record / RECORD_FILE if record.is_dir() else record
    folder = place.parent if out is None else out
    check_folder(folder, (PAGE_FILE, RECORD_FILE))
    page = write_report(read_record(place), folder)
    emit({"report": str(page)}, as_json=as_json, show=lambda result: say(result["report"]))
