"""Writes benchmarks/README.md and docs/scale.md from the results in benchmarks/results; nobody writes them by hand.

    python -m benchmarks.page [--check]

A section is a template in `benchmarks/sections`: what is measured and how, in words, with the figures of its results,
which are a file of the same name. Where there is none, the section names the command that measures it. What was
measured with another version says so. With `--check` nothing is written, and the exit code is 1 where a page differs.
"""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.paging import tables
from benchmarks.paging.losses import losses, told
from benchmarks.paging.records import Measurement, Sheet
from benchmarks.paging.scale import NEEDED, scale_words
from benchmarks.paging.sections import SECTIONS, Section
from benchmarks.paging.writing import RESULTS, ROOT, read_results
from benchmarks.scaling import ScalingResults
from topiarist import __version__
from topiarist.files import write_atomically

TEMPLATES = Path(__file__).parent / "sections"
PAGE, SCALE = ROOT / "benchmarks" / "README.md", ROOT / "docs" / "scale.md"
Known = Mapping[str, Measurement | None]


def main() -> int:
    """Write the pages, or compare them with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page differs")
    check, differ = parser.parse_args().check, []
    for path, text in write_pages().items():
        if not check:
            write_atomically(path, text.encode())
        elif not path.exists() or path.read_text() != text:
            differ.append(f"{path.relative_to(ROOT)} is not what the results say: run `python -m benchmarks.page`")
    print("\n".join(differ), end="\n" if differ else "", file=sys.stderr)
    return 1 if differ else 0


def write_pages(folder: Path = RESULTS) -> dict[Path, str]:
    """Return the text of each page."""
    known = {section.name: read_results(section.kind, section.name, folder) for section in SECTIONS}
    parts = [rendered("head", {}), where_we_lose(known), *(section_text(each, known[each.name]) for each in SECTIONS)]
    return {PAGE: "\n\n".join(parts) + "\n", SCALE: scale_text(known["scaling"]) + "\n"}


def section_text(section: Section, results: Measurement | None) -> str:
    """Return a section: what its template says, and what it was measured with."""
    if results is None:
        return f"{section.heading}\n\n{not_measured(section.command)}"
    return "\n\n".join([section.heading, rendered(section.name, context_of(section, results)), measured_with(results)])


def not_measured(command: str) -> str:
    """Return what stands in the place of figures that there are none of."""
    return f"Not measured yet: run `{command}`."


def context_of(section: Section, results: Measurement) -> dict[str, object]:
    """Return what a template may call."""
    context: dict[str, object] = {"command": results.command or section.command, "found": results}
    context |= section.pieces(results)
    if isinstance(results, Sheet):
        makers = (tables.by_case, tables.by_contender, tables.by_measure, tables.ratio, tables.largest)
        context |= {make.__name__: partial(make, results) for make in makers}
        context |= {
            "grid": lambda name: tables.written(results.grids[name]),
            "find": results.find,
            "shown": tables.shown,
        }
        context |= {"note": lambda name: results.notes.get(name, "")}
    return context


def rendered(name: str, context: Mapping[str, object]) -> str:
    """Return a template with its figures; what it names and does not get is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(f"{name}.md").render(**context).strip()


def measured_with(results: Measurement) -> str:
    """Return when, on what and with which versions something was measured, and whether the code has changed since."""
    at = f" at {results.commit}" if results.commit else ""
    when = f"on {results.date}" if results.date else "on a day that was not recorded"
    if results.transcribed:
        return (
            f"*Not measured with this version: copied from this page as it was written by hand, {when[3:]}{at and ', '}"
            f"{at[4:]}.*"
        )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results.packages.items()))
    parts = [f"Measured {when}{at}", *([f"with {versions}"] if versions else []), results.processor]
    code = results.packages.get("topiarist", __version__)
    older = f" This is version {__version__}: figures may have changed." if code != __version__ else ""
    return f"*{', '.join(part for part in parts if part)}.{older}*"


def where_we_lose(known: Known) -> str:
    """Return every comparison that a rival wins and every aim that is missed."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    asked = {False: 0, True: 0}
    for section in SECTIONS:
        results = known[section.name]
        compared = [] if results is None else list(section.compare(results))
        for aim in (False, True):
            own = [each for each in compared if each.aim == aim]
            asked[aim] += len({(each.case, each.measure) for each in own})
            for measure in dict.fromkeys(each.measure for each in own):
                found = [told(each) for each in losses(own) if each.measure == measure]
                if found:
                    place = f"[{section.title}](#{section.anchor}), {measure}"
                    lines[aim] += [f"- {place}:", *(f"    - {each}" for each in found)]
    return rendered("losses", {"behind": lines[False], "missed": lines[True], "asked": asked})


def scale_text(results: Measurement | None) -> str:
    """Return the page that carries the exponents on to sizes that were not measured."""
    if not isinstance(results, ScalingResults) or not {row.name for row in results.rows}.issuperset(NEEDED):
        return f"# Scale\n\n{not_measured('python -m benchmarks.scaling')}"
    return "\n\n".join([rendered("scale", scale_words(results)), measured_with(results)])


if __name__ == "__main__":
    sys.exit(main())
