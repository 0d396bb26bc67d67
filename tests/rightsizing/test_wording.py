"""The result in a sentence: how much smaller and faster, what that cost, and how sure it is."""

from typing import Any

import pytest

from topiarist.rightsizing.record import (
    ConfirmationRecord,
    DecisionRecord,
    GainsRecord,
    NetworkRecord,
    QualityRecord,
    RightsizingRecord,
    RungRecord,
    SettingsRecord,
    VerdictRecord,
)
from topiarist.rightsizing.wording import sentence

Times = tuple[float, float]


def record_of(
    status: str = "proven", torch_ms: Times = (1.0, 0.5), onnx_ms: Times | None = None, **verdict: Any
) -> RightsizingRecord:
    """Return a record with no more than a sentence needs."""
    onnx = onnx_ms or (None, None)
    chosen = "baseline" if status in ("unchanged", "unreachable") else "final-3"
    networks = [
        NetworkRecord.model_construct(
            id=name, ratio=ratio, file_kb=size, latency_ms=torch_ms[place], onnx_latency_ms=onnx[place]
        )
        for place, (name, ratio, size) in enumerate((("baseline", None, 30.0), ("final-3", 3.0, 10.0)))
    ]
    quality = [QualityRecord.model_construct(accuracy=accuracy) for accuracy in (0.9, 0.895)]
    rung = RungRecord.model_construct(ratio=3.0, p=0.0123, samples=200, samples_needed=1500)
    return RightsizingRecord.model_construct(
        verdict=VerdictRecord.model_construct(**{"status": status, "chosen": chosen, "confirmed": True, **verdict}),
        networks=tuple(networks),
        gains=GainsRecord.model_construct(
            size=3.0,
            latency=torch_ms[0] / torch_ms[1],
            onnx_latency=None if onnx_ms is None else onnx_ms[0] / onnx_ms[1],
        ),
        settings=SettingsRecord.model_construct(max_drop=0.01),
        decision=DecisionRecord.model_construct(rungs=(rung,)),
        test=ConfirmationRecord.model_construct(before=quality[0], after=quality[1]),
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
