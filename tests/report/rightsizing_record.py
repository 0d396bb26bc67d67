"""Records of rightsizings as `result.json` holds them, made by hand; names in them try to do harm."""

import math
from typing import NamedTuple, TypeVar

from topiarist.evolution.lineage import Decision, Fate, Lineage, Node
from topiarist.rightsizing.record import (
    GUESSING,
    BudgetRecord,
    CalibrationRecord,
    ColumnRecord,
    ConfirmationRecord,
    ConfusionRecord,
    DataRecord,
    DecisionRecord,
    EachRecord,
    EpochRecord,
    EstimateRecord,
    ExportsRecord,
    GainsRecord,
    GuessRecord,
    LayerRecord,
    MetricRecord,
    NearestRecord,
    NetworkRecord,
    OfferRecord,
    ReferenceRecord,
    RightsizingRecord,
    RungRecord,
    SettingsRecord,
    TaskRecord,
    VerdictRecord,
    VersionsRecord,
    WorkPlanRecord,
)
from topiarist.rightsizing.recording import with_sentence
from topiarist.settings import Record

EVIL = "<script>alert(1)</script>"
QUOTES = "\"quotes' & <b>bold</b>"
CLASSES = ("zero", EVIL, "two", "three", QUOTES, "five", "six", "seven", "eight", "a rather long name of a class")
METHODS = ("distinctiveness", "genetic", "magnitude", "surgeon", "factorisation")
MARKERS = dict(zip(METHODS, ("circle", "triangle", "inverted", "diamond", "pentagon"), strict=True))
BEFORE = (128, 64, 32)
METRICS = tuple(
    MetricRecord(name=name, title=title, higher_is_better=share, share=share, relative=False)
    for name, title, share in (
        ("accuracy", "accuracy", True),
        ("macro_accuracy", "accuracy, mean over the classes", True),
        ("log_loss", "log loss", False),
    )
)


class Row(NamedTuple):
    """What differs between the networks."""

    id: str
    method: str | None
    ratio: float | None
    widths: tuple[int, int, int]
    parameters: int
    accuracy: float
    front: bool
    winner: bool


BASELINE = Row("baseline", None, None, BEFORE, 18_986, 0.9771, False, False)
CANDIDATES = (
    Row("distinctiveness-2", "distinctiveness", 2, (70, 40, 28), 8848, 0.9785, True, True),
    Row("genetic-2", "genetic", 2, (80, 33, 30), 9193, 0.9771, False, False),
    Row("distinctiveness-4", "distinctiveness", 4, (40, 28, 20), 4538, 0.9764, True, True),
    Row("factorisation-4", "factorisation", 4, BEFORE, 4702, 0.9701, False, False),
    Row("genetic-8", "genetic", 8, (22, 16, 14), 2186, 0.9743, True, True),
    Row("magnitude-8", "magnitude", 8, BEFORE, 2204, 0.9645, False, False),
    Row("surgeon-8", "surgeon", 8, (24, 14, 12), 2220, 0.9722, False, False),
    Row("distinctiveness-16", "distinctiveness", 16, (12, 10, 10), 1130, 0.9423, True, True),
)


R = TypeVar("R", bound=Record)


def changed(record: R, **values: object) -> R:
    """Return a record with some values replaced, all of which it must know."""
    assert set(values) <= set(type(record).model_fields)
    return record.model_copy(update=values)


def curve(epochs: int, best: float) -> tuple[EpochRecord, ...]:
    """Return a learning curve that comes near to its best accuracy."""
    return tuple(
        EpochRecord(
            epoch=epoch,
            training_loss=round(2.3 * math.exp(-epoch / 6) + 0.01, 6),
            validation_loss=round(2.2 * math.exp(-epoch / 5) + 0.08 + 0.002 * math.sin(epoch), 6),
            validation_score=round(best - (best - 0.1) * math.exp(-epoch / 4) + 0.003 * math.sin(2 * epoch), 6),
        )
        for epoch in range(1, epochs + 1)
    )


def network(place: int, row: Row) -> NetworkRecord:
    """Return one network."""
    method, parameters, accuracy = row.method, row.parameters, row.accuracy
    return NetworkRecord(
        id=row.id,
        name=row.id,
        method=method,
        marker=None if method is None else MARKERS[method],
        ratio=row.ratio,
        parameters=parameters,
        nonzero=parameters - 7 * place,
        file_kb=round(parameters / 256 + 1.9, 3),
        memory_kb=round(parameters / 256, 3),
        macs=parameters - 202,
        latency_ms=round(0.021 + parameters / 350_000, 6),
        judged_score=accuracy,
        fold_scores=tuple(round(accuracy + shift, 4) for shift in (0.004, -0.006, 0.001, -0.002, 0.003)),
        validation_score=round(accuracy + 0.002, 4),
        validation_loss=round(3.1 * (1 - accuracy), 5),
        front=row.front,
        winner=row.winner,
        fits=method != "magnitude",
        layers=tuple(
            LayerRecord(name=layer, before=before, after=after)
            for layer, before, after in zip(("hidden0", EVIL, QUOTES), BEFORE, row.widths, strict=True)
        ),
        curve=() if method == "factorisation" else curve(40 if method is None else 25, accuracy),
        reasons=() if method is None else (f"took away what answers like another in {QUOTES}", "kept the outputs"),
        lineage=lineage() if method == "surgeon" else None,
    )


def node(number: int, parent: int | None, kind: str, begins: float, ends: float, width: int, fate: Fate) -> Node:
    """Return one network of a lineage."""
    accuracy = round(0.9 + 0.001 * ends + 0.002 * (fate == "best"), 4)
    return Node(
        number=number,
        parent=parent,
        edit="start" if parent is None else f"{kind} '{EVIL}'",
        kind=kind,
        decision=int(begins // 10),
        begins=begins,
        ends=ends,
        fate=fate,
        parameters=60 * width,
        widths=(("hidden0", 24), (EVIL, width), (QUOTES, 12)),
        accuracy=accuracy,
        score=accuracy - width / 10_000,
        reason=f"best by score & {QUOTES}" if fate == "best" else "too large for what it brings",
        points=((begins + 1, accuracy - 0.01), (ends, accuracy)),
    )


def lineage() -> Lineage:
    """Return the lineage of a small Surgeon: two decisions, four candidates."""
    nodes = [
        node(0, None, "start", 0, 10, 40, "kept"),
        node(1, 0, "remove", 10, 20, 24, "kept"),
        node(2, 0, "widen", 10, 11, 60, "dropped"),
        node(3, 1, "project", 20, 30, 14, "best"),
        node(4, 1, "identity", 20, 30, 24, "kept"),
    ]
    decisions = [
        Decision(number=1, epoch=10, draw=0, candidates=(1, 2), kept=(1,), reason=""),
        Decision(number=2, epoch=20, draw=0, candidates=(3, 4), kept=(3, 4), reason=""),
    ]
    return Lineage(epochs=30, nodes=nodes, decisions=decisions)


def rung(ratio: int, name: str, accuracy: float, low: float, p: float, proven: bool) -> RungRecord:
    """Return one step of the decision."""
    return RungRecord(
        ratio=ratio,
        network=name,
        score=accuracy,
        baseline_score=0.9771,
        difference=round(accuracy - 0.9771, 4),
        low=low,
        high=round(accuracy - 0.9771 + 0.0051, 4),
        inferior=accuracy - 0.9771 + 0.0051 < -0.01,
        verdict="proven" if proven else "rejected" if accuracy < 0.9671 else "not proven",
        guess_difference=round(accuracy - 0.1018, 4),
        guess_low=round(accuracy - 0.1018 - 0.013, 4),
        beats_guess=True,
        p=p,
        won=4.25,
        lost=12.25 + ratio,
        discordant=(16.5 + ratio) / 1438,
        samples=1438,
        power=0.99 - ratio / 100,
        samples_needed=300 + 40 * ratio,
        tested=True,
        level=0.05,
        chosen_by_fold=("distinctiveness", "genetic", "distinctiveness", "distinctiveness", "genetic"),
    )


def estimate(value: float, reach: float) -> EstimateRecord:
    """Return a value with its interval."""
    return EstimateRecord(value=value, low=round(value - reach, 4), high=round(value + reach, 4))


def confusion(
    right: int, wrong: dict[tuple[int, int], int], classes: int = len(CLASSES)
) -> tuple[tuple[int, ...], ...]:
    """Return the counts of a test part."""
    return tuple(
        tuple(wrong.get((row, column), right if row == column else 0) for column in range(classes))
        for row in range(classes)
    )


def record() -> RightsizingRecord:
    """Return the whole record: proven, with ONNX, references and a Surgeon."""
    networks = [network(place, row) for place, row in enumerate((BASELINE, *CANDIDATES))]
    networks[0] = changed(networks[0], onnx_latency_ms=0.0153, onnx_kb=76.8)
    networks[5] = changed(networks[5], onnx_latency_ms=0.0057, onnx_kb=10.2)
    whole = RightsizingRecord(
        verdict=VerdictRecord(
            status="proven",
            sentence="",
            agreement="does not contradict",
            chosen="genetic-8",
            why=(),
            power=0.91,
            samples=1438,
            samples_needed=620,
        ),
        task=TaskRecord(kind="classes", summary="10 classes", names=CLASSES, metrics=METRICS),
        gains=GainsRecord(
            size=7.3076,
            parameters=8.6853,
            macs=9.4677,
            nonzero=8.7012,
            memory=8.6853,
            latency=2.7641,
            onnx_latency=2.6842,
            onnx_size=5.1234,
            score=-0.0028,
        ),
        data=DataRecord(
            name=f"digits {EVIL} {QUOTES}",
            input_shape=(64,),
            training=1168,
            validation=270,
            test=359,
            notes=("12 rows without a target were left out",),
            columns=(
                ColumnRecord(
                    name=EVIL,
                    read_as="number",
                    different=41,
                    missing=15,
                    gaps="12 blank, 3 '?'",
                    inputs=2,
                    remarks=("decimal comma", QUOTES),
                ),
                ColumnRecord(
                    name="id", read_as="left out", different=674, missing=0, gaps="", inputs=0, remarks=("an id",)
                ),
            ),
        ),
        settings=SettingsRecord(
            effort="quick",
            seed=0,
            max_drop=0.01,
            alpha=0.05,
            methods=METHODS,
            budget=BudgetRecord(file_kb=20, memory_kb=None, parameters=None, macs=None, latency_ms=None),
            model="mlp 64-128-64-32-10",
            trained_before=False,
            command="topiarist rightsize digits.csv --target 'the \"digit\"' --budget 20KB --effort quick --seed 0",
        ),
        plan=WorkPlanRecord(
            work=1e12,
            seconds=60,
            design="refitted",
            folds=5,
            seeds=2,
            epochs=40,
            finetuning_epochs=60,
            trainings=3,
            ratios=(2, 4, 8, 16),
            finer=0,
            methods=METHODS,
            left_out=("for the work that 1,000 training samples take, seeds: 2 instead of 3",),
            notes=("magnitude, 16 × smaller: too few units",),
        ),
        networks=tuple(networks),
        decision=DecisionRecord(
            order="largest first, each at level alpha, until one fails",
            test="paired differences of correct answers, one-sided t",
            wanted_power=0.8,
            guess=GuessRecord(
                answer="always answering the most frequent class",
                score=0.1018,
                baseline_score=0.9771,
                difference=0.8753,
                low=0.861,
                samples=1438,
                beaten=True,
            ),
            rungs=(
                rung(2, "distinctiveness-2", 0.9785, -0.0022, 0.00000123, True),
                rung(4, "distinctiveness-4", 0.9764, -0.0041, 0.00031, True),
                rung(8, "genetic-8", 0.9743, -0.0079, 0.0031, True),
                rung(16, "distinctiveness-16", 0.9423, -0.0467, 0.9987, False),
            ),
        ),
        test=ConfirmationRecord(
            samples=359,
            before={"accuracy": 0.9721, "macro_accuracy": 0.9718, "log_loss": 0.0932},
            after={"accuracy": 0.9693, "macro_accuracy": 0.9689, "log_loss": 0.1047},
            difference=-0.0028,
            low=-0.0145,
            high=0.0089,
            p=0.114,
            proven=False,
            power=0.4,
            samples_needed=900,
            lost=3,
            won=2,
            score=EachRecord(samples=359, before=estimate(0.9721, 0.0171), after=estimate(0.9693, 0.0179)),
            each=tuple(
                EachRecord(samples=36 + n, before=estimate(0.97, 0.02), after=estimate(0.96 - n / 500, 0.03))
                for n in range(len(CLASSES))
            ),
        ),
        calibration=CalibrationRecord(
            temperature=1.234,
            samples=270,
            before={"log_loss": 0.1192, "calibration_error": 0.0213},
            after={"log_loss": 0.1047, "calibration_error": 0.0111},
        ),
        confusion=ConfusionRecord(
            before=confusion(35, {(1, 8): 3, (3, 5): 2, (9, 3): 1, (8, 1): 4}),
            after=confusion(34, {(1, 8): 2, (3, 5): 4, (9, 3): 1, (8, 1): 3, (6, 0): 1}),
        ),
        exports=ExportsRecord(
            model="model.safetensors",
            baseline="baseline.safetensors",
            onnx="model.onnx",
            onnx_difference=1.1e-6,
            onnx_samples=359,
        ),
        seconds={"baseline": 12.13, "candidates": 30.24, "measurement": 3.02, "total": 45.91},
        versions=VersionsRecord(
            topiarist="0.1.0",
            torch="2.13.0",
            python="3.11.7",
            numpy="2.3.1",
            scipy="1.17.1",
            onnxruntime="1.24.0",
            platform="Linux-6.1.0-x86_64",
            threads=1,
        ),
        references=(
            ReferenceRecord(name="majority", score=0.1018, test_score=0.1003, parameters=0, file_kb=0.0, seconds=0.0),
            ReferenceRecord(name="logistic regression", score=0.9583, test_score=0.9554, parameters=650, seconds=0.31),
            ReferenceRecord(name="gradient boosting", score=0.9701, test_score=0.9666, file_kb=812.4, seconds=4.21),
        ),
    )
    return with_sentence(whole)


def rewritten(record: RightsizingRecord, **values: object) -> RightsizingRecord:
    """Return a record with some values replaced and the words that follow from it, which must be a record again."""
    return RightsizingRecord.model_validate(with_sentence(changed(record, **values)).to_json())


def unproven() -> RightsizingRecord:
    """Return a record with too few samples, no ONNX, no lineage, and no network that keeps the budget."""
    whole = record()
    doubted = [changed(each, verdict="not proven", p=0.21) for each in whole.decision.rungs[:3]]
    doubted.append(changed(whole.decision.rungs[3], tested=False))
    doubt = {"power": 0.31, "samples_needed": 2480}
    nothing = {
        "onnx_latency_ms": None,
        "onnx_kb": None,
        "latency_ms": None,
        "lineage": None,
        "fits": False,
        "curve": (),
    }
    return rewritten(
        whole,
        verdict=changed(
            whole.verdict,
            status="unproven",
            power=0.31,
            samples_needed=2480,
        ),
        decision=changed(whole.decision, rungs=(*doubted[:2], changed(doubted[2], **doubt), doubted[3])),
        exports=changed(whole.exports, onnx=None, onnx_difference=None, onnx_samples=None),
        gains=changed(whole.gains, latency=None, onnx_latency=None, onnx_size=None),
        versions=changed(whole.versions, onnxruntime=None),
        settings=changed(whole.settings, command=None),
        nearest=(NearestRecord(id="genetic-8", text="12.3 KB on disk, the budget is 10", lost=0.0028),),
        networks=tuple(changed(each, **nothing) for each in whole.networks),
    )


def offering() -> RightsizingRecord:
    """Return a record in which the size after the proven one is neither proven nor rejected."""
    whole = record()
    last = changed(whole.decision.rungs[3], verdict="not proven", inferior=False, **{"p": 0.31, "difference": -0.006})
    return rewritten(
        whole,
        verdict=changed(
            whole.verdict, offered=(OfferRecord(network=last.network, file=f"{last.network}.safetensors"),)
        ),
        decision=changed(
            whole.decision, rungs=(*whole.decision.rungs[:3], changed(last, score=0.9711, low=-0.0139, high=0.0019))
        ),
    )


def guessing() -> RightsizingRecord:
    """Return a record of labels that have nothing to do with the inputs."""
    whole = unchanged()
    small = changed(
        record().decision.rungs[0],
        verdict=GUESSING,
        beats_guess=False,
        guess_difference=0.0021,
        guess_low=-0.0102,
    )
    guess = changed(
        whole.decision.guess, beaten=False, score=0.1018, baseline_score=0.1032, difference=0.0014, low=-0.0107
    )
    return rewritten(
        whole,
        verdict=changed(whole.verdict, status=GUESSING),
        networks=record().networks[:2],
        decision=changed(whole.decision, guess=guess, rungs=(small,)),
    )


def unchanged() -> RightsizingRecord:
    """Return a record in which the baseline stays, and nothing was decided."""
    whole = record()
    assert whole.test is not None
    none_lost = {"difference": 0.0, "low": -0.0075, "high": 0.0075, "p": 0.027, "proven": True, "won": 0, "lost": 0}
    return rewritten(
        whole,
        verdict=changed(
            whole.verdict,
            status="unchanged",
            chosen="baseline",
            agreement=None,
            power=None,
            samples=None,
            samples_needed=None,
        ),
        gains=GainsRecord(size=1, parameters=1, macs=1, nonzero=1, memory=1, latency=1, score=0),
        networks=whole.networks[:1],
        decision=changed(whole.decision, rungs=()),
        test=changed(whole.test, after=whole.test.before, **none_lost),
        confusion=changed(whole.confusion, after=whole.confusion.before),
    )


def many_classes(count: int = 40) -> RightsizingRecord:
    """Return a record with more classes than a matrix can show."""
    whole = record()
    return rewritten(
        whole,
        task=changed(whole.task, names=tuple(f"class {number} {EVIL}" for number in range(count))),
        confusion=ConfusionRecord(
            before=confusion(9, {(1, 8): 3, (3, 39): 2}, count),
            after=confusion(8, {(1, 8): 2, (3, 39): 4, (20, 21): 1}, count),
        ),
    )


def untested() -> RightsizingRecord:
    """Return a record of data without a test part, as scikit-learn's tools set it aside themselves."""
    whole = record()
    return rewritten(
        whole,
        verdict=changed(whole.verdict, agreement=None),
        data=changed(whole.data, test=0),
        gains=changed(whole.gains, score=None),
        test=None,
        confusion=ConfusionRecord(),
        calibration=None,
        exports=ExportsRecord(),
    )


def unreachable() -> RightsizingRecord:
    """Return a record in which nothing fits the budget and is good enough: that of an `UnreachableError`."""
    whole = unchanged()
    return rewritten(
        whole,
        verdict=changed(
            whole.verdict,
            status="unreachable",
        ),
        networks=tuple(changed(each, fits=False) for each in record().networks),
        nearest=(NearestRecord(id="genetic-8", text="12.3 KB on disk, the budget is 10", lost=None),),
    )


def smallest() -> RightsizingRecord:
    """Return a record of a baseline of which next to nothing is known."""
    alone = unchanged()
    known = {"judged_score": None, "fold_scores": (), "validation_loss": None, "latency_ms": None}
    baseline = changed(alone.networks[0], **known, layers=(), curve=(), onnx_latency_ms=None, onnx_kb=None)
    return rewritten(
        alone,
        gains=GainsRecord(**dict.fromkeys(name for name in GainsRecord.model_fields if name != "speed")),
        data=DataRecord(name="", input_shape=(), training=0, validation=0, test=0, notes=()),
        networks=(baseline,),
        test=None,
        confusion=ConfusionRecord(),
        calibration=None,
        exports=ExportsRecord(),
        seconds={},
    )
