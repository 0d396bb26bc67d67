"""`topiarist report`: the page of a rightsizing, made again from its record; or two results on one page."""

from pathlib import Path
from typing import Annotated

import typer

from topiarist.cli.options import AsJson
from topiarist.cli.output import emit, say


def report_command(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A result.json, or the folder that holds it.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Another one, to compare it with.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder for the page.  [default: the record's; to compare, where you are]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the page of a rightsizing again, from its record; of two, a page that compares them.

    Example: topiarist report rightsized

    Two results side by side: topiarist report quick thorough
    """
    from topiarist.errors import SettingsError
    from topiarist.files import check_folder
    from topiarist.report.writing import (
        COMPARISON_FILE,
        PAGE_FILE,
        RECORD_FILE,
        read_record,
        write_comparison,
        write_report,
    )

    places = [place / RECORD_FILE if place.is_dir() else place for place in (record, other) if place is not None]
    if len(places) == 1:
        folder = places[0].parent if out is None else out
        check_folder(folder, (RECORD_FILE,))  # which may be the record that is read: it is written as it is
        check_folder(folder, (PAGE_FILE,), inputs=places)
        page = write_report(read_record(places[0]), folder)
    else:
        if places[0].resolve() == places[1].resolve():
            raise SettingsError(f"{record} and {other} are the same record: name two to compare them")
        folder = Path() if out is None else out
        check_folder(folder, (COMPARISON_FILE,), inputs=places)
        page = write_comparison([read_record(place) for place in places], [str(record), str(other)], folder)
    emit({"report": str(page)}, as_json=as_json, show=lambda result: say(result["report"]))
