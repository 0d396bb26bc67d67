"""The result in a sentence: how much smaller and faster, what that cost, and how sure it is."""

import pytest

from tests.report.rightsizing_record import changed, record
from topiarist.rightsizing.record import RecordStatus, RightsizingRecord
from topiarist.rightsizing.wording import sentence

Times = tuple[float, float]


def record_of(
    status: RecordStatus = "proven",
    torch_ms: Times = (1.0, 0.5),
    onnx_ms: Times | None = None,
    *,
    confirmed: bool = True,
) -> RightsizingRecord:
    """Return a record with the figures that a sentence needs."""
    whole = record()
    assert whole.test is not None
    onnx = onnx_ms or (None, None)
    before, after = (
        changed(network, id=name, ratio=ratio, file_kb=size, latency_ms=latency, onnx_latency_ms=onnx_latency)
        for network, name, ratio, size, latency, onnx_latency in zip(
            whole.networks[:2], ("baseline", "final-3"), (None, 3.0), (30.0, 10.0), torch_ms, onnx, strict=True
        )
    )
    chosen = before if status in ("unchanged", "unreachable") else after
    rung = changed(whole.decision.rungs[0], ratio=3.0, p=0.0123, samples=200, samples_needed=1500)
    quality: list[dict[str, float | None]] = [{"accuracy": accuracy} for accuracy in (0.9, 0.895)]
    onnx_gain = None if onnx_ms is None else onnx_ms[0] / onnx_ms[1]
    return changed(
        whole,
        verdict=changed(whole.verdict, status=status, chosen=chosen.id, confirmed=confirmed),
        networks=(before, after),
        gains=changed(whole.gains, size=3.0, latency=torch_ms[0] / torch_ms[1], onnx_latency=onnx_gain),
        decision=changed(whole.decision, rungs=(rung,)),
        test=changed(whole.test, before=quality[0], after=quality[1]),
    )


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (record_of(torch_ms=(1.0, 0.5)), "2.0 × faster in torch"),
        (record_of(torch_ms=(1.0, 0.5), onnx_ms=(0.9, 0.3)), "3.0 × faster in ONNX Runtime"),
        (record_of(torch_ms=(0.5, 1.0)), "2.0 × slower in torch"),
        (record_of(torch_ms=(1.0, 0.97)), "as fast in torch"),
        (
            record_of(torch_ms=(1.0, 0.5), onnx_ms=(0.017, 0.021)),
            "as fast in ONNX Runtime",
        ),  # by some µs
    ],
)
def test_times_that_differ_by_chance_are_the_same(record: RightsizingRecord, said: str) -> None:
    assert sentence(record).split(", ")[1] == said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            record_of(),
            "From 30.0 KB to 10.0 KB: 3.0 × smaller, 2.0 × faster in torch, accuracy 90.0 → 89.5 %,"
            " not worse within 1 point (p = 0.012).",
        ),
        (
            record_of(confirmed=False),
            "From 30.0 KB to 10.0 KB: 3.0 × smaller, 2.0 × faster in torch, accuracy 90.0 → 89.5 %,"
            " not worse within 1 point (p = 0.012; the test part by itself lost more).",
        ),
        (
            record_of("unproven"),
            "From 30.0 KB to 10.0 KB: 3.0 × smaller, 2.0 × faster in torch, accuracy 90.0 → 89.5 %,"
            " unproven within 1 point (1,500 samples would tell, 200 were there).",
        ),
        (record_of("unchanged"), "30.0 KB, accuracy 90.0 %: no smaller network is good enough."),
        (
            record_of("unreachable"),
            "No network was found that fits the budget and is not worse by more than 1 point.",
        ),
    ],
)
def test_the_sentence_says_what_came_of_it(record: RightsizingRecord, said: str) -> None:
    assert sentence(record) == said
