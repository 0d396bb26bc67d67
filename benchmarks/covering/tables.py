"""The Markdown tables: a summary per class of networks, then a row per network."""

import textwrap
from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.covering.records import DONE, Attempt, Check, Results, Row
from benchmarks.paging.records import Comparison

ALL = "all"
FAINTEST = 3  # networks that are named
LONGEST = 110  # characters of a reason: the file of results has the rest


def write_markdown(results: Results) -> str:
    """Return both tables, and the versions that they were measured with."""
    parts = [summary_table(results.rows)]
    for group in _groups(results.rows):
        table = network_table([row for row in results.rows if row.group == group])
        parts.append(f"<details><summary>{group.capitalize()}</summary>\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


def pieces(results: Results) -> dict[str, str]:
    """Return all tables, and what is said of them, by name."""
    return {"tables": write_markdown(results), "count": str(len(results.rows)), "exceptions": _exceptions(results.rows)}


def _exceptions(rows: Sequence[Row]) -> str:
    """Return which networks are not useful, and what is felt least."""
    failed = [f"`{row.name}` ({_gone(row.ours)} gone)" for row in rows if not row.ours.useful]
    faint = sorted((row for row in rows if row.ours.felt is not None), key=lambda row: row.ours.felt or 0.0)[:FAINTEST]
    told = f"Not useful of ours: {', '.join(failed)}." if failed else "All of ours are useful."
    return f"{told} Least is felt in {', '.join(f'`{row.name}` ({row.ours.felt or 0.0:.0e})' for row in faint)}."


def compare(results: Results) -> list[Comparison]:
    """Return the share of parameters that is gone, by us and by torch-pruning, where either is useful."""
    found = []
    for row in results.rows:
        ours, theirs = (attempt.share_gone if attempt.useful else 0.0 for attempt in (row.ours, row.torch_pruning))
        if row.ours.useful or row.torch_pruning.useful:
            found.append(
                Comparison(
                    case=row.name,
                    measure="parameters gone, %",
                    better="more",
                    ours=round(100 * (ours or 0.0)),
                    theirs=round(100 * (theirs or 0.0)),
                    rival="torch-pruning",
                )
            )
    return found


def summary_table(rows: Sequence[Row]) -> str:
    """Return a line per class of networks, and one for all of them."""
    lines = [_summary_line(group, [row for row in rows if row.group == group]) for group in _groups(rows)]
    if len(lines) > 1:
        lines.append(_summary_line(ALL, rows))
    return _markdown(lines)


def _summary_line(title: str, rows: Sequence[Row]) -> dict[str, str]:
    seconds = [row.ours.anatomy_seconds for row in rows if row.ours.anatomy_seconds is not None]
    return {
        "class": title,
        "networks": str(len(rows)),
        "useful, ours": str(sum(row.ours.useful for row in rows)),
        "useful, torch-pruning": str(sum(row.torch_pruning.useful for row in rows)),
        "anatomy found": str(len(seconds)),
        "median seconds": f"{median(seconds):.2f}" if seconds else "",
        "shapes kept": str(sum(bool(row.ours.shapes_kept) for row in rows)),
        "reloaded": _tally(rows, lambda row: row.ours.reloaded),
        "ONNX agrees": _tally(rows, lambda row: row.ours.onnx),
        "equals reference": _tally(rows, lambda row: row.ours.reference),
        "torch-pruning equals reference": _tally(rows, lambda row: row.torch_pruning.reference),
    }


def network_table(rows: Sequence[Row]) -> str:
    """Return a line per network."""
    return _markdown([_network_line(row) for row in rows])


def _network_line(row: Row) -> dict[str, str]:
    ours, rival = row.ours, row.torch_pruning
    return {
        "network": row.name,
        "parameters": "" if ours.parameters_before is None else f"{ours.parameters_before:,}",
        "seconds": "" if ours.anatomy_seconds is None else f"{ours.anatomy_seconds:.2f}",
        "free spaces": "" if ours.free_spaces is None else f"{ours.free_spaces} of {_spaces(row)}",
        "gone": _gone(ours),
        "reloaded": _answer(ours.reloaded),
        "ONNX": _answer(ours.onnx),
        "reference": _answer(ours.reference),
        "felt": "" if ours.felt is None else f"{ours.felt:.0e}",
        "torch-pruning: gone": _gone(rival),
        "its reference": _answer(rival.reference),
        "why not, ours": _why(ours, ours.reloaded, ours.onnx, ours.reference),
        "why not, torch-pruning": _why(rival, rival.reference),
    }


def _spaces(row: Row) -> int:
    return (row.ours.free_spaces or 0) + (row.ours.fixed_spaces or 0)


def _groups(rows: Sequence[Row]) -> list[str]:
    """Return the classes in the order of their first networks."""
    return list(dict.fromkeys(row.group for row in rows))


def _tally(rows: Sequence[Row], check: Callable[[Row], Check]) -> str:
    """Return how many passed of those that were asked."""
    answers = [check(row).passed for row in rows]
    asked = [answer for answer in answers if answer is not None]
    return f"{sum(asked)} of {len(asked)}"


def _gone(attempt: Attempt) -> str:
    """Return the share of parameters that are gone, bold where the result is useful."""
    if attempt.share_gone is None:
        return "–"
    if not attempt.shapes_kept:
        return "other shapes"
    share = f"{100 * attempt.share_gone:.0f} %"
    return f"**{share}**" if attempt.useful else share


def _answer(check: Check) -> str:
    return {True: "yes", False: "no", None: "–"}[check.passed]


def _why(attempt: Attempt, *checks: Check) -> str:
    """Return why an attempt ended early, or which checks failed."""
    reasons = [] if attempt.stage == DONE else [f"{attempt.stage}: {attempt.reason}"]
    reasons += [check.note for check in checks if check.passed is False]
    return textwrap.shorten("; ".join(reasons).replace("|", "\\|"), LONGEST, placeholder=" …")


def _markdown(lines: list[dict[str, str]]) -> str:
    rows = [list(lines[0]), ["---"] * len(lines[0]), *(list(line.values()) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
