"""The networks of a rightsizing that were tested, as rows of a table: for the terminal and for notebooks."""

from topiarist.rightsizing.record import RightsizingRecord
from topiarist.rightsizing.wording import value_words


def tested_rows(record: RightsizingRecord) -> list[dict[str, str]]:
    """Return one row for the baseline and for each network that was tested, in the order of the record."""
    tested = {rung.network: rung for rung in record.decision.rungs}
    rows = []
    for place, network in enumerate(record.networks):
        rung = tested.get(network.id)
        if rung is None and place:
            continue
        words = ("" if rung is None else rung.verdict, "chosen" if network.id == record.verdict.chosen else "")
        rows.append(
            {
                "network": network.id,
                "made by": network.method or "",
                record.metric.title: (
                    "" if network.judged_score is None else value_words(record.metric, network.judged_score)
                ),
                "parameters": f"{network.parameters:,}",
                "KB": f"{network.file_kb:.1f}",
                "MACs": f"{network.macs:,}",
                "ms": f"{network.latency_ms:.3f}",
                "p": "" if rung is None else f"{rung.p:.2g}",
                "": ", ".join(filter(None, words)),
            }
        )
    return rows
