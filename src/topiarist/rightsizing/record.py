"""The record of a rightsizing: plain numbers and texts, all that its report shows."""

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from topiarist.data import Data
from topiarist.evolution import non_dominated
from topiarist.measurement import Measurement, measure
from topiarist.measurement.latency import in_turn, time_sample
from topiarist.methods.shape import changed_widths
from topiarist.models.evaluation import numbers_of, placed
from topiarist.rightsizing.known import BASELINE, Finished, Known, final
from topiarist.rightsizing.wording import sentence, unreachable
from topiarist.statistics import compare_answers
from topiarist.training import History
from topiarist.training.inference import first_sample
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

FORMAT = 1
NEAREST = 3
REPEATS = 100  # of a sample, in each of several rounds
PACKAGES = ("topiarist", "torch", "numpy", "scipy", "onnxruntime")
Record = dict[str, Any]


def make_record(job: Finished) -> Record:
    """Measure all networks, and write everything down."""
    measured = measurements(job)
    networks = network_records(job, measured)
    tested = test_record(job)
    verdict = verdict_record(job, tested)
    record: Record = {
        "format": FORMAT,
        "verdict": verdict,
        "gains": gains(measured[BASELINE], measured[job.chosen], tested),
        "data": data_record(job.data),
        "settings": dict(job.settings),
        "plan": {
            **job.plan.to_json(),
            "ratios": list(job.descent.ratios),
            "notes": [*job.plan.notes, *job.descent.notes],
        },
        "networks": networks,
        "decision": decision_record(job),
        "test": tested,
        "confusion": confusions(job),
        "exports": {"model": None, "baseline": None, "onnx": None, "onnx_difference": None, "onnx_samples": None},
        "nearest": nearest(job, networks, measured) if job.choice is None else [],
        "versions": versions(),
    }
    verdict["sentence"] = unreachable(record) if job.choice is None else sentence(record)
    return record


def measurements(job: Finished) -> dict[str, Measurement]:
    """Measure all networks on the validation part, and time them in turn."""
    sample = first_sample(job.data.validation)
    timers = {name: partial(time_sample, network, sample, repeats=REPEATS) for name, network in job.networks.items()}
    timed = in_turn(timers)
    return {
        name: replace(
            measure(network, job.data, part="validation", latency=False),
            latency_ms=timed[name].median_ms,
            latency_spread_ms=timed[name].spread_ms,
        )
        for name, network in job.networks.items()
    }


def network_records(job: Finished, measured: Mapping[str, Measurement]) -> list[Record]:
    """Give what is known of each network, the baseline first."""
    whole = job.networks[BASELINE]
    sample = placed(first_sample(job.data.train), numbers_of(whole))
    costs = {
        name: (-known.accuracy, measured[name].parameters)
        for name, known in job.known.items()
        if known.accuracy is not None
    }
    front = dict(zip(costs, non_dominated(list(costs.values())).tolist(), strict=True))
    return [
        {
            **network_record(name, known, measured[name]),
            "front": front.get(name, False),
            "fits": job.budget.excess(measured[name]) is None,
            "layers": [
                {"name": space, "before": before, "after": after}
                for space, (before, after) in changed_widths(whole, known.made.model, sample).items()
            ],
        }
        for name, known in job.known.items()
    ]


def network_record(name: str, known: Known, measured: Measurement) -> Record:
    """Give what is known of one network by itself."""
    return {
        "id": name,
        "name": name,
        "method": known.method,
        "ratio": known.ratio,
        "parameters": measured.parameters,
        "nonzero": measured.nonzero,
        "file_kb": measured.file_kb,
        "memory_kb": measured.memory_kb,
        "macs": measured.macs,
        "latency_ms": measured.latency_ms,
        "onnx_latency_ms": None,
        "onnx_kb": None,
        "judged_accuracy": known.accuracy,
        "fold_accuracies": known.fold_accuracies,
        "validation_accuracy": measured.accuracy,
        "validation_loss": measured.to_json()["log_loss"],
        "winner": known.finalist,
        "curve": list(curve(known.made.histories)),
        "reasons": list(known.made.reasons),
        "lineage": None if known.made.lineage is None else dict(known.made.lineage),
    }


def curve(histories: Sequence[History]) -> Iterator[Record]:
    """Give the epochs of trainings, one after the other, numbered through."""
    epochs = [epoch for history in histories for epoch in history.epochs]
    for number, epoch in enumerate(epochs, start=1):
        yield {
            "epoch": number,
            "training_loss": finite(epoch.train_loss),
            "validation_loss": finite(epoch.validation_loss),
            "validation_accuracy": epoch.validation_accuracy,
        }


def finite(value: float | None) -> float | None:
    """Give None for what is no number."""
    return value if value is not None and math.isfinite(value) else None


def verdict_record(job: Finished, tested: Record | None) -> Record:
    """Give what was decided; its sentence is written last."""
    judgement = None if job.choice is None else job.choice.judgement
    found = None if judgement is None else judgement.evidence
    return {
        "status": "unreachable" if job.choice is None else job.choice.status,
        "sentence": "",
        "confirmed": None if tested is None else tested["difference"] >= -job.settings["max_drop"],
        "chosen": job.chosen,
        "why": [] if job.choice is None else list(job.choice.why),
        "power": None if found is None else found.power,
        "samples": None if found is None else found.samples,
        "samples_needed": None if found is None else found.samples_needed,
    }


def decision_record(job: Finished) -> Record:
    """Give the tests, size by size."""
    rungs = []
    for judgement in job.judged:
        rung, found = judgement.rung, judgement.evidence.to_json()
        rungs.append(
            {
                **found,
                "discordant": (found["won"] + found["lost"]) / found["samples"],
                "ratio": rung.target.ratio,
                "network": final(rung),
                "proven": judgement.proven,
                "tested": judgement.tested,
                "chosen_by_fold": list(rung.winners[:-1]),
            }
        )
    return {
        "test": "Tango's score test on paired right answers, one-sided",
        "order": "from the largest size to the smallest, each at the full level, until one fails",
        "rungs": rungs,
    }


def test_record(job: Finished) -> Record | None:
    """Compare the network with the baseline on the test part, which no decision saw; None where there is none."""
    if len(job.data.test) < 2:
        return None
    quality = {
        side: {
            "accuracy": accuracy(logits, labels),
            "macro_accuracy": macro_accuracy(logits, labels),
            "log_loss": finite(log_loss(logits, labels)),
        }
        for side, (logits, labels) in job.tested.items()
    }
    right = {side: (logits.argmax(dim=1) == labels).double().numpy() for side, (logits, labels) in job.tested.items()}
    margin, alpha = job.settings["max_drop"], job.settings["alpha"]
    found = compare_answers(right["after"], right["before"], margin=margin, alpha=alpha).to_json()
    return {**quality, **{key: value for key, value in found.items() if "accuracy" not in key}}


def gains(before: Measurement, after: Measurement, tested: Record | None) -> Record:
    """Give how many times smaller and faster the network is, and the difference of accuracy."""
    return {
        "size": ratio(before.file_kb, after.file_kb),
        "parameters": ratio(before.parameters, after.parameters),
        "macs": ratio(before.macs, after.macs),
        "nonzero": ratio(before.nonzero, after.nonzero),
        "memory": ratio(before.memory_kb, after.memory_kb),
        "latency": ratio(before.latency_ms, after.latency_ms),
        "onnx_latency": None,
        "onnx_size": None,
        "accuracy": None if tested is None else tested["difference"],
    }


def ratio(one: float | None, other: float | None) -> float | None:
    """Give a ratio of two figures that are known."""
    return None if not one or not other else one / other


def data_record(data: Data) -> Record:
    """Give what the data are."""
    return {
        "name": data.name,
        "classes": list(data.classes),
        "input_shape": list(data.input_shape),
        "training": len(data.train),
        "validation": len(data.validation),
        "test": len(data.test),
        "notes": list(data.notes),
    }


def confusions(job: Finished) -> dict[str, list[list[int]]]:
    """Count the samples of each class (rows) that were taken for each class, on the test part."""
    if not len(job.data.test):
        return {"before": [], "after": []}
    classes = len(job.data.classes)
    return {
        side: torch.bincount(labels * classes + logits.argmax(dim=1), minlength=classes**2)
        .reshape(classes, classes)
        .tolist()
        for side, (logits, labels) in job.tested.items()
    }


def nearest(job: Finished, networks: Sequence[Record], measured: Mapping[str, Measurement]) -> list[Record]:
    """Name the networks that come nearest to fitting and to being good enough."""
    allowed, baseline = job.settings["max_drop"], networks[0]["judged_accuracy"]
    found = []
    for record in networks[1:]:
        excess = job.budget.excess(measured[record["id"]])
        lost = None if record["judged_accuracy"] is None else baseline - record["judged_accuracy"]
        said = f"fits with {record['file_kb']:.1f} KB" if excess is None else str(excess)
        if lost is not None:
            loss = f"{100 * lost:.1f} points, {100 * allowed:g} are allowed" if lost > 0 else "no accuracy"
            said += f"; it loses {loss}"
        above = 1.0 if excess is None else excess.found / excess.limit
        distance = above + (1.0 if lost is None else max(0.0, lost / allowed - 1))
        found.append((distance, {"id": record["id"], "said": said, "lost": lost}))
    return [record for _, record in sorted(found, key=lambda pair: pair[0])[:NEAREST]]


def versions() -> Record:
    """Give what is needed to repeat it."""
    known: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = None
    return {**known, "python": platform.python_version(), "platform": platform.platform(), "threads": 1}
