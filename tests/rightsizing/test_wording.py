"""What the sentence says of speed."""

from typing import Any

import pytest

from topiarist.rightsizing.wording import speed


def record_of(torch_ms: tuple[float, float], onnx_ms: tuple[float, float] | None = None) -> dict[str, Any]:
    onnx = onnx_ms or (None, None)
    networks = [
        {"id": name, "latency_ms": torch_ms[place], "onnx_latency_ms": onnx[place]}
        for place, name in enumerate(("baseline", "final-3"))
    ]
    gains = {
        "latency": torch_ms[0] / torch_ms[1],
        "onnx_latency": None if onnx_ms is None else onnx_ms[0] / onnx_ms[1],
    }
    return {"verdict": {"chosen": "final-3"}, "networks": networks, "gains": gains}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (record_of((1.0, 0.5)), "2.0 × faster in torch"),
        (record_of((1.0, 0.5), (0.9, 0.3)), "3.0 × faster in ONNX Runtime"),
        (record_of((0.5, 1.0)), "2.0 × slower in torch"),
        (record_of((1.0, 0.97)), "as fast in torch"),
        (record_of((1.0, 0.5), (0.017, 0.021)), "as fast in ONNX Runtime"),  # by some millionths of a second
    ],
)
def test_times_that_differ_by_chance_are_the_same(record: dict[str, Any], said: str) -> None:
    assert speed(record) == said
