"""A record of a right-sizing as `result.json` holds it, made by hand; names in it try to do harm."""

import math
from typing import Any

Record = dict[str, Any]

EVIL = "<script>alert(1)</script>"
QUOTES = "\"quotes' & <b>bold</b>"
CLASSES = ["zero", EVIL, "two", "three", QUOTES, "five", "six", "seven", "eight", "a rather long name of a class"]
BEFORE = [128, 64, 32]
# id, method, ratio, widths, parameters, judged accuracy, on the front, winner of its ratio
CANDIDATES: list[tuple[str, str, float, list[int], int, float, bool, bool]] = [
    ("distinctiveness-2", "distinctiveness", 2, [70, 40, 28], 8848, 0.9785, True, True),
    ("genetic-2", "genetic", 2, [80, 33, 30], 9193, 0.9771, False, False),
    ("distinctiveness-4", "distinctiveness", 4, [40, 28, 20], 4538, 0.9764, True, True),
    ("factorisation-4", "factorisation", 4, [128, 64, 32], 4702, 0.9701, False, False),
    ("genetic-8", "genetic", 8, [22, 16, 14], 2186, 0.9743, True, True),
    ("magnitude-8", "magnitude", 8, [128, 64, 32], 2204, 0.9645, False, False),
    ("surgeon-8", "surgeon", 8, [24, 14, 12], 2220, 0.9722, False, False),
    ("distinctiveness-16", "distinctiveness", 16, [12, 10, 10], 1130, 0.9423, True, True),
]


def curve(epochs: int, best: float) -> list[Record]:
    """Give a learning curve that comes near to its best accuracy."""
    return [
        {
            "epoch": epoch,
            "training_loss": round(2.3 * math.exp(-epoch / 6) + 0.01, 6),
            "validation_loss": round(2.2 * math.exp(-epoch / 5) + 0.08 + 0.002 * math.sin(epoch), 6),
            "validation_accuracy": round(best - (best - 0.1) * math.exp(-epoch / 4) + 0.003 * math.sin(2 * epoch), 6),
        }
        for epoch in range(1, epochs + 1)
    ]


def network(place: int, row: tuple[str, str | None, float | None, list[int], int, float, bool, bool]) -> Record:
    """Give one network."""
    name, method, ratio, widths, parameters, accuracy, front, winner = row
    names = ["hidden0", EVIL, QUOTES]
    return {
        "id": name,
        "name": name,
        "method": method,
        "ratio": ratio,
        "parameters": parameters,
        "nonzero": parameters - 7 * place,
        "file_kb": round(parameters / 256 + 1.9, 3),
        "memory_kb": round(parameters / 256, 3),
        "macs": parameters - 202,
        "latency_ms": round(0.021 + parameters / 350_000, 6),
        "onnx_latency_ms": None,
        "onnx_kb": None,
        "judged_accuracy": accuracy,
        "fold_accuracies": [round(accuracy + shift, 4) for shift in (0.004, -0.006, 0.001, -0.002, 0.003)],
        "validation_accuracy": round(accuracy + 0.002, 4),
        "validation_loss": round(3.1 * (1 - accuracy), 5),
        "front": front,
        "winner": winner,
        "fits": method != "magnitude",
        "layers": [
            {"name": layer, "before": before, "after": after}
            for layer, before, after in zip(names, BEFORE, widths, strict=True)
        ],
        "curve": [] if method == "factorisation" else curve(40 if method is None else 25, accuracy),
        "reasons": [] if method is None else [f"took away what answers like another in {QUOTES}", "kept the outputs"],
        "lineage": lineage() if method == "surgeon" else None,
    }


def node(number: int, parent: int | None, kind: str, begins: float, ends: float, width: int, fate: str) -> Record:
    """Give one network of a lineage."""
    accuracy = round(0.9 + 0.001 * ends + 0.002 * (fate == "best"), 4)
    return {
        "number": number,
        "parent": parent,
        "edit": "start" if parent is None else f"{kind} '{EVIL}'",
        "kind": kind,
        "decision": int(begins // 10),
        "begins": begins,
        "ends": ends,
        "fate": fate,
        "parameters": 60 * width,
        "widths": [["hidden0", 24], [EVIL, width], [QUOTES, 12]],
        "accuracy": accuracy,
        "score": accuracy - width / 10_000,
        "reason": f"best by score & {QUOTES}" if fate == "best" else "too large for what it brings",
        "points": [[begins + 1, accuracy - 0.01], [ends, accuracy]],
    }


def lineage() -> Record:
    """Give the lineage of a small Surgeon: two decisions, four candidates."""
    nodes = [
        node(0, None, "start", 0, 10, 40, "kept"),
        node(1, 0, "remove", 10, 20, 24, "kept"),
        node(2, 0, "widen", 10, 11, 60, "dropped"),
        node(3, 1, "project", 20, 30, 14, "best"),
        node(4, 1, "identity", 20, 30, 24, "kept"),
    ]
    decisions = [
        {"number": 1, "epoch": 10, "draw": 0, "candidates": [1, 2], "kept": [1], "reason": ""},
        {"number": 2, "epoch": 20, "draw": 0, "candidates": [3, 4], "kept": [3, 4], "reason": ""},
    ]
    return {"epochs": 30, "nodes": nodes, "decisions": decisions}


def rung(ratio: int, name: str, accuracy: float, low: float, p: float, proven: bool, tested: bool = True) -> Record:
    """Give one step of the decision."""
    return {
        "ratio": ratio,
        "network": name,
        "accuracy": accuracy,
        "baseline_accuracy": 0.9771,
        "difference": round(accuracy - 0.9771, 4),
        "low": low,
        "p": p,
        "discordant": 0.0113 + ratio / 1000,
        "samples": 1438,
        "power": 0.99 - ratio / 100,
        "samples_needed": 300 + 40 * ratio if ratio < 16 else None,
        "proven": proven,
        "tested": tested,
        "chosen_by_fold": ["distinctiveness", "genetic", "distinctiveness", "distinctiveness", "genetic"],
    }


def confusion(right: int, wrong: dict[tuple[int, int], int], classes: int = len(CLASSES)) -> list[list[int]]:
    """Give the counts of a test part."""
    return [
        [wrong.get((row, column), right if row == column else 0) for column in range(classes)] for row in range(classes)
    ]


def record() -> Record:
    """Give the whole record: proven, with ONNX and a Surgeon."""
    baseline = network(0, ("baseline", None, None, BEFORE, 18_986, 0.9771, False, False))
    networks = [baseline, *(network(place, row) for place, row in enumerate(CANDIDATES, start=1))]
    networks[0] |= {"onnx_latency_ms": 0.0153, "onnx_kb": 76.8}
    networks[5] |= {"onnx_latency_ms": 0.0057, "onnx_kb": 10.2}
    return {
        "format": 1,
        "verdict": {
            "status": "proven",
            "sentence": "From 76.1 KB to 10.4 KB: 7.3 × smaller, 2.8 × faster, accuracy 97.2 → 96.9 %, "
            "not worse within 1 point (p = 0.0031).",
            "confirmed": True,
            "chosen": "genetic-8",
            "why": ["the smallest network that was proven to be not worse", "16 × failed: 3.5 points worse"],
            "power": 0.83,
            "samples": 1438,
            "samples_needed": 620,
        },
        "gains": {
            "size": 7.3076,
            "parameters": 8.6853,
            "macs": 9.4677,
            "nonzero": 8.7012,
            "memory": 8.6853,
            "latency": 2.7641,
            "onnx_latency": 2.6842,
            "onnx_size": 5.1234,
            "accuracy": -0.0028,
        },
        "data": {
            "name": f"digits {EVIL} {QUOTES}",
            "classes": CLASSES,
            "input_shape": [64],
            "training": 1168,
            "validation": 270,
            "test": 359,
            "notes": ["12 rows without a target were left out"],
        },
        "settings": {
            "effort": "quick",
            "seed": 0,
            "max_drop": 0.01,
            "alpha": 0.05,
            "methods": ["distinctiveness", "genetic", "magnitude", "surgeon", "factorisation"],
            "budget": {"file_kb": 20, "parameters": None, "macs": None, "latency_ms": None},
            "model": "mlp 64-128-64-32-10",
            "command": "topiarist rightsize digits.csv --target 'the \"digit\"' --size 20KB --effort quick --seed 0",
        },
        "plan": {
            "seconds": 60,
            "design": "refitted",
            "folds": 5,
            "seeds": 2,
            "epochs": 40,
            "finetuning_epochs": 60,
            "ratios": [2, 4, 8, 16],
            "notes": ["the clock left time for 2 of 3 seeds"],
        },
        "networks": networks,
        "decision": {
            "order": "largest first, each at level alpha, until one fails",
            "test": "paired differences of correct answers, one-sided t",
            "rungs": [
                rung(2, "distinctiveness-2", 0.9785, -0.0022, 0.00000123, True),
                rung(4, "distinctiveness-4", 0.9764, -0.0041, 0.00031, True),
                rung(8, "genetic-8", 0.9743, -0.0079, 0.0031, True),
                rung(16, "distinctiveness-16", 0.9423, -0.0467, 0.9987, False),
            ],
        },
        "test": {
            "samples": 359,
            "before": {"accuracy": 0.9721, "macro_accuracy": 0.9718, "log_loss": 0.0932},
            "after": {"accuracy": 0.9693, "macro_accuracy": 0.9689, "log_loss": 0.1047},
            "difference": -0.0028,
            "low": -0.0145,
            "high": 0.0089,
            "p": 0.114,
            "power": 0.4,
            "samples_needed": 900,
            "lost": 3,
            "won": 2,
        },
        "confusion": {
            "before": confusion(35, {(1, 8): 3, (3, 5): 2, (9, 3): 1, (8, 1): 4}),
            "after": confusion(34, {(1, 8): 2, (3, 5): 4, (9, 3): 1, (8, 1): 3, (6, 0): 1}),
        },
        "exports": {
            "model": "model.safetensors",
            "baseline": "baseline.safetensors",
            "onnx": "model.onnx",
            "onnx_difference": 1.1e-6,
            "onnx_samples": 359,
        },
        "nearest": [],
        "seconds": {"baseline": 12.13, "candidates": 30.24, "measurement": 3.02, "total": 45.91},
        "versions": {
            "topiarist": "0.1.0",
            "torch": "2.13.0",
            "python": "3.11.7",
            "numpy": "2.3.1",
            "onnxruntime": "1.24.0",
            "platform": "Linux-6.1.0-x86_64",
            "threads": 1,
        },
    }


def unproven() -> Record:
    """Give a record in which there were too few samples, no ONNX, no lineage, and no network that keeps the budget."""
    bare = record()
    bare["verdict"]["sentence"] = (
        "From 76.1 KB to 10.4 KB: 7.3 × smaller, accuracy 97.2 → 96.9 %; not proven (p = 0.21)."
    )
    bare["verdict"] |= {"status": "unproven", "confirmed": False, "power": 0.31, "samples_needed": None}
    bare["exports"] |= {"onnx": None, "onnx_difference": None, "onnx_samples": None}
    bare["gains"] |= {"latency": None, "onnx_latency": None, "onnx_size": None}
    bare["versions"]["onnxruntime"] = None
    bare["settings"]["command"] = None
    bare["nearest"] = [{"id": "genetic-8", "said": "12.3 KB on disk, the budget is 10"}]
    for found in bare["networks"]:
        found |= {"onnx_latency_ms": None, "onnx_kb": None, "latency_ms": None, "lineage": None, "fits": False}
        found["curve"] = []
    return bare


def unchanged() -> Record:
    """Give a record in which the baseline stays, and nothing was decided."""
    alone = record()
    alone["verdict"] |= {"status": "unchanged", "chosen": "baseline", "power": None, "samples_needed": None, "why": []}
    alone["verdict"]["sentence"] = "The network keeps its 76.1 KB: no smaller one is not worse within 1 point."
    alone["gains"] = dict.fromkeys(alone["gains"])
    alone["networks"] = alone["networks"][:1]
    alone["decision"]["rungs"] = []
    alone["test"] |= dict.fromkeys(
        ("after", "difference", "low", "high", "p", "power", "samples_needed", "lost", "won")
    )
    alone["confusion"]["after"] = None
    return alone


def many_classes(count: int = 40) -> Record:
    """Give a record with more classes than a matrix can show."""
    large = record()
    large["data"]["classes"] = [f"class {number} {EVIL}" for number in range(count)]
    large["confusion"] = {
        "before": confusion(9, {(1, 8): 3, (3, 39): 2}, count),
        "after": confusion(8, {(1, 8): 2, (3, 39): 4, (20, 21): 1}, count),
    }
    return large
