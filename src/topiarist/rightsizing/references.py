"""Simple models beside the networks: a guess, a linear model, gradient boosting, and the teacher, on the same samples.

Each is made in every fold without the samples that it is judged on, as the networks are. Sizes are of parameters in
float32 where a model has some, of the pickled model where it is of trees.
"""

import io
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.data import Data, Part, Samples
from topiarist.methods.outcome import Outcome
from topiarist.models import mlp
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import child_seed, generator
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import JudgedAnswers, clearly_better, evidence_of, guessed, judged_score, lost_of
from topiarist.rightsizing.making import MadeNetwork, TaughtFolds, TrainingTask, train_taught
from topiarist.rightsizing.planning import WorkPlan
from topiarist.rightsizing.record import ReferenceRecord, finite
from topiarist.rightsizing.running import Crew
from topiarist.rightsizing.wording import margin_words, shown_p, value_words
from topiarist.statistics import Metric, PairedEvidence
from topiarist.tasks import TaskKind
from topiarist.threads import one_thread
from topiarist.training.tables.boosting import LEAST_PROBABILITY, fit_boosting

LINEAR = "linear"  # the network without hidden units
KILOBYTE, FLOAT32 = 1024, 4
ITERATIONS = 2_000  # of logistic regression, which converges long before on scaled inputs
MOST_WORK = (
    1e9  # rows × inputs × outputs of all fits together: beyond it, simple models would take longer than networks
)
GUESS: dict[TaskKind, str] = {"classes": "majority", "numbers": "mean", "labels": "most frequent labels"}
LINEAR_MODEL: dict[TaskKind, str] = {
    "classes": "logistic regression",
    "numbers": "ridge regression",
    "labels": "logistic regression",
}

Answering = Callable[[Samples], Tensor]  # outputs for samples
Fitted = tuple[Answering, int | None, float]  # parameters, KB
FitModel = Callable[[Part, Data, int], Fitted]


@dataclass(frozen=True)
class LinearNetwork:
    """The network without hidden units: that to keep, its answers in each fold, and how it compares.

    `beats_guess` is whether it is shown to be better than the best constant answer.
    """

    outcome: Outcome
    answers: Sequence[JudgedAnswers]
    evidence: PairedEvidence
    beats_guess: bool

    @property
    def parameters(self) -> int:
        """How many parameters it has."""
        return count_parameters(self.outcome.model)

    def replaces(self, chosen: nn.Module) -> bool:
        """Return whether it is proven not to be worse than the baseline, and smaller than the network chosen."""
        return self.evidence.proven and self.beats_guess and self.parameters < count_parameters(chosen)


def can_be_referred(folds: Sequence[Fold]) -> bool:
    """Return whether simple models can be made: of rows of a table in memory, and of no more than take a minute."""
    data = folds[-1].data
    if not isinstance(data.train, Part) or len(data.input_shape) != 1:
        return False
    fits = len({id(fold.data.train) for fold in folds})
    return fits * len(data.train) * data.input_shape[0] * data.task.outputs <= MOST_WORK


def reference_records(folds: Sequence[Fold], seed: int) -> tuple[ReferenceRecord, ...]:
    """Return what simple models are worth on the samples that networks are judged on, and the networks' teacher."""
    data = folds[-1].data
    parameters = data.task.outputs
    guess = ReferenceRecord(
        name=GUESS[data.task.kind],
        score=finite(judged_score([fold.guess_answers for fold in folds[:-1]])),
        test_score=finite(judged_score([guessed(data)])) if len(data.test) else None,
        parameters=parameters,
        file_kb=parameters * FLOAT32 / KILOBYTE,
        seconds=0.0,
    )
    fits: dict[str, FitModel] = {} if _bytes_left_in_file(data) else {LINEAR_MODEL[data.task.kind]: _linear}
    fits["gradient boosting"] = _boosted
    return guess, *(_record(name, fit, folds, seed) for name, fit in fits.items()), *_teacher(folds)


def _bytes_left_in_file(data: Data) -> int:
    """Return how many bytes the training samples would take at once, as a linear model wants them; 0 if they do now."""
    part = data.train
    if not isinstance(part, Part) or isinstance(part.samples, Tensor):
        return 0
    return math.prod(part.samples.shape) * FLOAT32


def missing_notes(folds: Sequence[Fold]) -> tuple[str, ...]:
    """Return that no linear model was fitted, where samples are prepared batch by batch."""
    data = folds[-1].data
    size = _bytes_left_in_file(data)
    if not size:
        return ()
    name = LINEAR_MODEL[data.task.kind]
    return (
        f"no {name} beside the networks: it would need all {len(data.train):,} training samples at once,"
        f" {size / 2**20:,.0f} MB; the network without hidden units is as simple",
    )


def _record(name: str, fit: FitModel, folds: Sequence[Fold], seed: int) -> ReferenceRecord:
    """Fit a model in each fold, once for folds that train on the same rows, and judge it there."""
    fitted: dict[int, Fitted] = {}
    judged, data, begun = [], folds[-1].data, time.process_time()
    for fold in folds:
        part = fold.data.train
        assert isinstance(part, Part)
        if id(part) not in fitted:
            begun = time.process_time()
            fitted[id(part)] = fit(part, fold.data, seed)
            seconds = time.process_time() - begun
        judged.append(_judged(fitted[id(part)][0], fold.data))
    _, parameters, size = fitted[id(data.train)]
    return ReferenceRecord(
        name=name,
        score=finite(judged_score([each for each in judged[:-1] if each is not None])),
        test_score=None if judged[-1] is None else finite(judged_score([judged[-1]])),
        parameters=parameters,
        file_kb=size,
        seconds=seconds,
    )


def _judged(answer: Answering, data: Data) -> JudgedAnswers | None:
    """Return what a model answers to the samples that are judged; None where there are none."""
    part = data.test
    if not len(part):
        return None
    assert isinstance(part, Part)
    return JudgedAnswers(data.task, answer(part.samples).float()[None], part.y, part.weights)


def _teacher(folds: Sequence[Fold]) -> tuple[ReferenceRecord, ...]:
    """Return what the teacher of a table is worth; it has no size of its own that one would ship."""
    if folds[-1].lesson is None:
        return ()
    score = finite(judged_score([fold.teacher_judged() for fold in folds[:-1]]))
    kept = folds[-1]
    test = finite(judged_score([kept.teacher_judged()])) if len(kept.data.test) else None
    return (ReferenceRecord(name="teacher", score=score, test_score=test),)


def _boosted(part: Part, data: Data, seed: int) -> Fitted:
    import joblib  # noqa: PLC0415  # only here

    model, file = fit_boosting(part, data.task, seed=seed), io.BytesIO()
    joblib.dump(list(model.models), file)
    return model, None, file.tell() / KILOBYTE


def _linear(part: Part, data: Data, seed: int) -> Fitted:
    """Return logistic regression, one per label, or ridge regression, with scikit-learn's own penalties."""
    kind, parameters = data.task.kind, (part.x.shape[1] + 1) * data.task.outputs
    weights = None if part.weights is None else part.weights.numpy()
    answer = {"classes": _logistic_classes, "labels": _logistic_labels, "numbers": _ridge}[kind](part, weights, data)
    return answer, parameters, parameters * FLOAT32 / KILOBYTE


def _logistic_classes(part: Part, weights: NDArray[Any] | None, data: Data) -> Answering:
    probabilities = _logistic(part.x.numpy(), part.y.numpy(), weights, data.task.outputs)
    return lambda x: torch.from_numpy(probabilities(x[:].numpy())).clamp(min=LEAST_PROBABILITY).log()


def _logistic_labels(part: Part, weights: NDArray[Any] | None, data: Data) -> Answering:
    columns = part.y.numpy().astype(numpy.int64).T
    each = [_logistic(part.x.numpy(), column, weights, 2) for column in columns]

    def answer(x: Samples) -> Tensor:
        found = numpy.stack([probabilities(x[:].numpy())[:, 1] for probabilities in each], axis=1)
        return torch.from_numpy(found).logit(eps=LEAST_PROBABILITY)

    return answer


def _logistic(
    x: NDArray[Any], y: NDArray[Any], weights: NDArray[Any] | None, classes: int
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return what gives the probabilities of all classes; 0 for those that the samples do not show."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # takes a second to import

    shown, model = numpy.unique(y), None
    if len(shown) > 1:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # of one that has not converged
            model = LogisticRegression(max_iter=ITERATIONS).fit(x, y, sample_weight=weights)

    def probabilities(samples: NDArray[Any]) -> NDArray[Any]:
        found = numpy.zeros((len(samples), classes))
        found[:, shown] = 1.0 if model is None else model.predict_proba(samples)
        return found

    return probabilities


def _ridge(part: Part, weights: NDArray[Any] | None, data: Data) -> Answering:
    from sklearn.linear_model import Ridge  # noqa: PLC0415  # as above

    with one_thread():
        model = Ridge().fit(part.x.numpy(), part.y.numpy(), sample_weight=weights)
    return lambda x: torch.from_numpy(numpy.asarray(model.predict(x[:].numpy()))).reshape(len(x), -1)


def linear_network(
    folds: Sequence[Fold], plan: WorkPlan, *, margin: float, alpha: float, crew: Crew | None = None
) -> LinearNetwork | None:
    """Return the network without hidden units, which learns as the smaller ones do; None for what is no table.

    It is compared with the baselines by the same test, by itself: its place in the order of sizes is not known before.
    """
    if len(folds[-1].data.input_shape) != 1:
        return None
    trainings = plan.trainings
    places = [number for number in range(len(folds)) for _ in range(trainings)]
    seeds = [child_seed(folds[place].seed, LINEAR, number % trainings) % 2**32 for number, place in enumerate(places)]
    fresh = {seed: MadeNetwork(_fresh(folds[-1].data, seed), (), (), None) for seed in seeds}
    task = TrainingTask(
        stage=LINEAR,
        epochs=plan.finetuning_epochs,
        folds=tuple(places),
        seeds=tuple(seeds),
        networks=tuple(fresh[seed] for seed in seeds),
    )
    wholes = [fresh[seeds[0]].model for _ in folds]
    (made,) = (crew or Crew()).run(train_taught, [task], TaughtFolds(folds=folds), wholes)
    tuned = [made.networks[place] for place in range(len(places))]
    networks = [[each.model for each in tuned[first : first + trainings]] for first in range(0, len(tuned), trainings)]
    answers = [fold.judged_together(row) for fold, row in zip(folds[:-1], networks, strict=False)]
    baselines = [fold.baseline_answers for fold in folds[:-1]]
    evidence = evidence_of(answers, baselines, margin=margin, alpha=alpha)
    guess = evidence_of(answers, [fold.guess_answers for fold in folds[:-1]], margin=margin, alpha=alpha)
    return LinearNetwork(tuned[-trainings].outcome(folds[-1]), answers, evidence, clearly_better(guess, alpha))


def _fresh(data: Data, seed: int) -> nn.Module:
    return mlp([data.input_shape[0], data.task.outputs], generator=generator(seed, "initial weights"))


def linear_notes(
    found: LinearNetwork | None, chosen: nn.Module, folds: Sequence[Fold], alpha: float
) -> tuple[str, ...]:
    """Return that the network without hidden units is as good and smaller, where it is."""
    if found is None or not found.replaces(chosen):
        return ()
    metric, evidence = folds[-1].task.primary_metric, found.evidence
    return (
        f"a linear model is as good: the network without hidden units, {found.parameters:,} parameters, is not worse"
        f" by more than {margin_words(metric, evidence.margin)} either (one test at level {alpha:g},"
        f" {shown_p(evidence.p)}); it is the network '{LINEAR}'",
    )


def better_notes(
    found: Sequence[ReferenceRecord], baseline: float | None, metric: Metric, margin: float
) -> tuple[str, ...]:
    """Return which simple models are ahead of the baseline by more than may be lost, on the samples of all folds."""
    ahead = [
        f"{model.name} has {value_words(metric, model.score)}"
        for model in found
        if model.file_kb is not None  # the teacher has no size: nobody would ship it
        and model.score is not None
        and baseline is not None
        and lost_of(metric, model.score, baseline) < -margin
    ]
    if not ahead or baseline is None:
        return ()
    return (
        f"{' and '.join(ahead)} of {metric.title} on the samples that networks are judged on, the baseline"
        f" {value_words(metric, baseline)}: what is proven is said of the baseline, and not that a network serves best",
    )
