"""`resize`: from a network and a method to a smaller network, and the record of what it cost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from topiarist.data import Data
from topiarist.measurement import Budget
from topiarist.methods.job import Score, make_job
from topiarist.methods.method import NO_BUDGET, Method, OnProgress, Resizing
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import DEFAULT_METHOD, find_method
from topiarist.methods.resizing import resize_all
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.surgery.calibration import Calibration
from topiarist.tracing import Ignored, Inputs


def resize(
    model: nn.Module,
    data: Data | None = None,
    method: Method | str = DEFAULT_METHOD,
    *,
    budget: Budget | None = None,
    retraining: FineTuning | Rewinding | None = None,
    early: nn.Module | None = None,
    finetune: Callable[[nn.Module], Any] | None = None,
    score: Score | None = None,
    settling: int | None = None,
    calibration: Calibration | None = None,
    example_input: Inputs | None = None,
    ignored: Ignored = (),
    seed: int = 0,
    latency: bool = True,
    checkpoint: Path | str | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Resize a network as a method decides; the argument stays as it is.

    Parameters
    ----------
    model : nn.Module
        A trained network.
    data : Data, optional
        Labelled samples. Without them, give your own `calibration` and, where a loss is limited, `score`.
    method : Method or str
        What decides, or the name of a registered method.
    budget : Budget, optional
        How small the network must become, or how much it may lose.
    retraining : FineTuning or Rewinding, optional
        What follows each cut.
    early : nn.Module, optional
        The network of an early epoch, for `Rewinding(weights=True)`.
    settling : int, optional
        The number of steps by which a cut that was refitted is moved towards the answers of the whole network on
        calibration data, without labels; 0 for none. By default as many as suit the size of the work. It comes before
        any retraining, and not before rewinding.
    finetune : callable, optional
        Your own training, in place of `retraining`: `finetune(model)` trains in place.
    score : callable, optional
        What a loss is judged by: `score(model)`, larger is better. By default accuracy on the validation part;
        for numbers −ln RMSE, so that `max_drop` is relative; for labels the mean ROC-AUC. Of your own score it is
        absolute, in the units of the score.
        Genetic searches have their own fitness.
    calibration : tensor, sequence or iterable of batches, optional
        Inputs that show what units do. By default those of the training part.
    example_input : tensor, sequence or mapping, optional
        What the network is called with; by default the first samples of data or calibration.
    ignored : str, type or several of them
        Layers, or types of layers, that keep all of their units.
    seed : int
    latency : bool
        Whether to time the networks before and after.
    checkpoint : path, optional
        A file that a method which resumes writes as it goes; the same call continues from it.
    on_progress : callable, optional
        Called with the share of the work that is done, from 0 to 1; it never falls.

    Returns
    -------
    Outcome

    Raises
    ------
    BudgetError
        If the budget cannot be met; the text names what can.
    SettingsError
        If settings do not go together.

    Examples
    --------
    >>> from topiarist import Budget, load_data, models, resize
    >>> small = resize(models.mlp([64, 32, 10]), load_data("digits"), budget=Budget(parameters=1_000))
    >>> small.after.parameters <= 1_000
    True
    """
    chosen = find_method(method)() if isinstance(method, str) else method
    resizing = Resizing(
        method=chosen,
        budget=budget or NO_BUDGET,
        retraining=retraining,
        finetune=finetune,
        settling=settling,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        on_progress=_rising(on_progress) if on_progress is not None else lambda share: None,
    )
    job = make_job(
        model,
        data,
        example_input=example_input,
        score=score,
        calibration=calibration,
        early=early,
        ignored=ignored,
        seed=seed,
        times_latency=latency,
        runtime=resizing.budget.runtime,
        threads=resizing.budget.threads,
        all_samples=chosen.traits.all_samples,
    )
    resizing.check(job)
    _ = job.before  # data that cannot be measured are refused before any work
    (outcome,) = resize_all([job], resizing)
    _ = outcome.after, outcome.units  # measured now rather than at the first look
    return outcome


def _rising(on_progress: OnProgress) -> OnProgress:
    """Return a report of the highest share so far: networks that race are trained one after the other."""
    highest = 0.0

    def report(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        on_progress(highest)

    return report
