"""What came of a rightsizing, in a sentence."""

from collections.abc import Mapping
from typing import Any

from topiarist.rightsizing.choosing import points, shown_p

AS_FAST = (0.95, 1.05)
LEAST_MS = 0.01  # below which two times differ by chance: calling a network takes longer
Record = Mapping[str, Any]


def sentence(record: Record) -> str:
    """Say how much smaller and faster the network is, what that cost, and how sure that is."""
    verdict = record["verdict"]
    if verdict["status"] == "unchanged":
        before = record["networks"][0]
        return f"{before['file_kb']:.1f} KB, {shown_accuracy(record)}: no smaller network is good enough."
    before, after = (network_of(record, name) for name in ("baseline", chosen_name(record)))
    sizes = f"From {before['file_kb']:.1f} KB to {after['file_kb']:.1f} KB: {record['gains']['size']:.1f} × smaller"
    return f"{sizes}, {speed(record)}, {shown_accuracy(record)}, {certainty(record)}."


def certainty(record: Record) -> str:
    """Say how sure it is that nothing was lost."""
    verdict, margin = record["verdict"], points(record["settings"]["max_drop"])
    rung = next(each for each in record["decision"]["rungs"] if each["ratio"] == chosen_ratio(record))
    if verdict["status"] == "proven":
        doubt = "; the test part by itself lost more" if verdict["confirmed"] is False else ""
        return f"not worse within {margin} ({shown_p(rung['p'])}{doubt})"
    needed = f"{rung['samples_needed']:,} samples would tell, {rung['samples']:,} were there"
    return f"unproven within {margin} ({needed})"


def unreachable(record: Record) -> str:
    """Say that nothing fits."""
    margin = points(record["settings"]["max_drop"])
    return f"No network was found that fits the budget and is not worse by more than {margin}."


def shown_accuracy(record: Record) -> str:
    """Write accuracy before and after, on the test part or, where there is none, over the folds."""
    if record["test"] is not None:
        before, after = (record["test"][name]["accuracy"] for name in ("before", "after"))
    else:
        chosen = network_of(record, chosen_name(record))
        before, after = record["networks"][0]["judged_accuracy"], chosen["judged_accuracy"]
    if after is None or record["verdict"]["status"] == "unchanged":
        return f"accuracy {100 * before:.1f} %"
    return f"accuracy {100 * before:.1f} → {100 * after:.1f} %"


def speed(record: Record) -> str:
    """Say how much faster the network is: where it will be used if that is known, in torch otherwise."""
    gains = record["gains"]
    where, name = ("ONNX Runtime", "onnx_latency") if gains["onnx_latency"] else ("torch", "latency")
    gain, times = gains[name], [network_of(record, each)[f"{name}_ms"] for each in ("baseline", chosen_name(record))]
    if gain is None or AS_FAST[0] <= gain <= AS_FAST[1] or abs(times[0] - times[1]) < LEAST_MS:
        return f"as fast in {where}"
    return f"{gain:.1f} × faster in {where}" if gain > 1 else f"{1 / gain:.1f} × slower in {where}"


def chosen_ratio(record: Record) -> float:
    """Give the size that was chosen."""
    return float(network_of(record, chosen_name(record))["ratio"])


def chosen_name(record: Record) -> str:
    """Give the name of the network that was chosen."""
    return str(record["verdict"]["chosen"])


def network_of(record: Record, name: str) -> Mapping[str, Any]:
    """Look a network up."""
    found: Mapping[str, Any] = next(network for network in record["networks"] if network["id"] == name)
    return found
