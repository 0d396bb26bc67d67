"""`write_report`: the record of a rightsizing as a page for people and as JSON for programs."""

import json
from pathlib import Path

from topiarist.files import write_atomically
from topiarist.report.rightsizing import rightsizing_page
from topiarist.report.rightsizing_quotes import Record

PAGE_FILE, RECORD_FILE = "report.html", "result.json"


def write_report(record: Record, folder: str | Path) -> Path:
    """Write `report.html` and `result.json` into a folder, and give the path of the page."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    page = rightsizing_page(record)
    write_atomically(place / RECORD_FILE, json.dumps(record, indent=1, allow_nan=False).encode())
    write_atomically(place / PAGE_FILE, page.encode())
    return place / PAGE_FILE
