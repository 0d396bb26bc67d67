"""The result in a sentence: how much smaller and faster, what that cost, and how sure it is."""

import math
from typing import Any

import pytest

from tests.report.rightsizing_record import changed, record, unchanged
from topiarist.report.rightsizing.front import least_allowed
from topiarist.rightsizing.record import FARTHER_NOTE, GUESSING, OWN_NOTE, Agreement, RecordStatus, RightsizingRecord
from topiarist.rightsizing.wording import sentence, speed_words, why_of

Times = tuple[float, float]


def record_of(
    status: RecordStatus = "proven",
    torch_ms: Times = (1.0, 0.5),
    onnx_ms: Times | None = None,
    *,
    agreement: Agreement | None = "confirms",
    **figures: Any,
) -> RightsizingRecord:
    """Return a record with the figures that a sentence needs; `figures` are those of the size that was tested."""
    whole = record()
    onnx = onnx_ms or (None, None)
    before, after = (
        changed(network, id=name, ratio=ratio, file_kb=size, latency_ms=latency, onnx_latency_ms=onnx_latency)
        for network, name, ratio, size, latency, onnx_latency in zip(
            whole.networks[:2], ("baseline", "final-3"), (None, 3.0), (30.0, 10.0), torch_ms, onnx, strict=True
        )
    )
    chosen = after if status in ("proven", "unproven") else before
    known: dict[str, Any] = {"ratio": 3.0, "network": "final-3", "p": 0.0123, "samples": 200, "samples_needed": 1500}
    known |= {"score": 0.895, "baseline_score": 0.9, "difference": -0.005, "power": 0.31} | figures
    guess = changed(whole.decision.guess, baseline_score=0.9, score=0.895, difference=0.005, samples=200)
    return changed(
        whole,
        verdict=changed(whole.verdict, status=status, chosen=chosen.id, agreement=agreement),
        networks=(before, after),
        gains=changed(whole.gains, size=3.0),
        decision=changed(whole.decision, rungs=(changed(whole.decision.rungs[0], **known),), guess=guess),
    )


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (record_of(torch_ms=(1.0, 0.5)), "2.0 × faster in torch"),
        (
            record_of(torch_ms=(1.0, 0.5), onnx_ms=(0.9, 0.3)),
            "3.0 × faster in ONNX Runtime and 2.0 × faster in torch",
        ),
        (record_of(torch_ms=(0.5, 1.0)), "2.0 × slower in torch"),
        (record_of(torch_ms=(1.01, 1.0), onnx_ms=(0.013, 0.014)), "as fast in ONNX Runtime and in torch"),
        (record_of(torch_ms=(1.0, 0.5), onnx_ms=(0.017, 0.021)), "as fast in ONNX Runtime and 2.0 × faster in torch"),
    ],
)
def test_times_that_differ_by_chance_are_the_same(record: RightsizingRecord, said: str) -> None:
    assert speed_words(record) == said
    assert sentence(record).startswith(f"From 30.0 KB to 10.0 KB: 3.0 × smaller, {said}; ")


SIZES = "From 30.0 KB to 10.0 KB: 3.0 × smaller, 2.0 × faster in torch"
SCORES = "accuracy 90.0 → 89.5 % over 200 samples"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            record_of(),
            f"{SIZES}; {SCORES}, not worse within 1 point (p = 0.012); the test part confirms it.",
        ),
        (
            record_of(agreement="does not contradict"),
            f"{SIZES}; {SCORES}, not worse within 1 point (p = 0.012);"
            " the test part does not contradict it (too few samples to tell).",
        ),
        (
            record_of(agreement="contradicts"),
            f"{SIZES}; {SCORES}, not worse within 1 point (p = 0.012); the test part contradicts it.",
        ),
        (record_of(agreement=None), f"{SIZES}; {SCORES}, not worse within 1 point (p = 0.012)."),
        (
            record_of("unproven", agreement=None, verdict="not proven", p=0.21),
            f"{SIZES}; {SCORES}, not proven within 1 point"
            " (p = 0.21; the power was 31 %, 1,500 samples would make it 80 %).",
        ),
        (
            record_of("unproven", agreement="contradicts", verdict="not proven", p=0.21, power=0.85),
            f"{SIZES}; {SCORES}, not proven within 1 point (p = 0.21, although the power was 85 %);"
            " the test part shows that it loses more than 1 point.",
        ),
        (
            record_of("unchanged", verdict="rejected"),
            "30.0 KB, accuracy 90.0 % over 200 samples: no smaller network is good enough, all that were tried lost"
            " more than 1 point.",
        ),
        (
            record_of("unchanged", verdict=GUESSING),
            "30.0 KB, accuracy 90.0 % over 200 samples: all smaller networks that were tried lost more than 1 point or"
            " are no better than guessing.",
        ),
        (
            record_of(GUESSING, verdict=GUESSING),
            "30.0 KB, accuracy 90.0 % over 200 samples: no better than guessing (always answering the most frequent"
            " class, which has 89.5 %).",
        ),
        (
            record_of("unreachable", verdict="rejected"),
            "No network was found that fits the budget and is not worse by more than 1 point.",
        ),
        (
            record_of("unreachable", verdict=GUESSING),
            "No network was found that fits the budget, is better than guessing and is not worse by more than 1 point.",
        ),
    ],
)
def test_the_sentence_says_what_came_of_it(record: RightsizingRecord, said: str) -> None:
    assert sentence(record) == said


def test_sizes_that_time_left_untested_are_not_said_to_be_impossible() -> None:
    none = unchanged()
    assert sentence(none).endswith(": no smaller network could be made.")
    late = changed(none, plan=changed(none.plan, cut_short="the time limit of 8 s ended the work"))
    assert sentence(late).endswith(": no smaller network was tested in time.")


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            {"verdict": "rejected", "inferior": True, "difference": -0.02},
            "3 × smaller is rejected: −2.00 points over 200 samples, more than 1 point, and that it loses more is"
            " shown",
        ),
        (
            {"verdict": "rejected", "inferior": False, "difference": -0.02},
            "3 × smaller is rejected: −2.00 points over 200 samples, more than 1 point, though so few samples do not"
            " show that it does",
        ),
        (
            {"verdict": "not proven", "tested": False, "p": 0.01, "power": 0.9},
            "3 × smaller is not proven: −0.50 points over 200 samples, p = 0.01, although the power was 90 %, its turn"
            " did not come after a larger size that was not proven",
        ),
        (
            {"verdict": "not proven", "p": 0.03, "level": 0.01, "power": 0.9},
            "3 × smaller is not proven: −0.50 points over 200 samples, p = 0.03 above the 0.01 that its test asks for,"
            " although the power was 90 %",
        ),
        (
            {"verdict": "not proven", "p": 0.0402, "level": 0.04, "power": 0.9},
            "3 × smaller is not proven: −0.50 points over 200 samples, p = 0.0402 above the 0.04 that its test asks"
            " for, although the power was 90 %",
        ),
        (
            {"verdict": "not proven", "p": 0.97, "difference": 0.01, "notes": (OWN_NOTE,)},
            "3 × smaller is not proven: +1.00 points over 200 samples, the network to keep lost more than is allowed"
            " on the validation part, p = 0.97",
        ),
        (
            {"verdict": "not proven", "p": 0.2, "times_as_far": 1.62, "power": 0.9, "notes": (FARTHER_NOTE,)},
            "3 × smaller is not proven: −0.50 points over 200 samples, p = 0.2 for 1.6 × the loss, as the network to"
            " keep is 1.6 × as far from its teacher as those judged, although the power was 90 %",
        ),
    ],
)
def test_every_verdict_comes_with_its_figures(figures: dict[str, Any], said: str) -> None:
    (line,) = why_of(record_of("unchanged", **figures))
    assert line == said


@pytest.mark.parametrize(
    ("names", "in_units", "several"),
    [(("rent", "age"), True, True), (("rent",), True, False), (("rent", "age"), False, False)],
)
def test_errors_of_several_targets_are_said_to_be_compared_in_deviations(
    names: tuple[str, ...], in_units: bool, several: bool
) -> None:
    """Their mean in the user's units may become larger where the errors that are compared become smaller."""
    whole = record_of(score=6.8, baseline_score=6.7, difference=0.015)
    rmse = changed(whole.metric, name="rmse", title="RMSE", share=False, relative=True, in_units=in_units)
    task = changed(whole.task, names=names, metrics=(changed(rmse, higher_is_better=False),))
    found = changed(whole, task=task, settings=changed(whole.settings, max_drop=0.02))
    words = " in deviations of each target" if several else ""
    assert f"RMSE 6.7 → 6.8 over 200 samples, not worse within 2 %{words} (p = 0.012)" in sentence(found)
    assert f": RMSE{words} 1.50 % smaller over 200 samples" in why_of(found)[0]
    assert math.isfinite(least_allowed(found)) != several
