"""`plot`: the figure that belongs to a result, as matplotlib has it."""

from collections.abc import Mapping
from functools import singledispatch

from matplotlib.figure import Figure

from topiarist.errors import SettingsError
from topiarist.methods import Outcome
from topiarist.report.curves import Run, learning_curves
from topiarist.report.lineage import topology_over_time
from topiarist.report.pareto import Point, pareto_figure
from topiarist.report.rightsizing.front import front_drawing, spots_of
from topiarist.rightsizing import Rightsizing
from topiarist.study.results import Results
from topiarist.training import History


@singledispatch
def plot(result: object) -> Figure:
    """Return the figure that belongs to a result.

    Parameters
    ----------
    result : History, Outcome, Rightsizing or Results
        A training: its losses. A resizing: the widths over time of an evolution, the losses of any other. A
        rightsizing and a study: what networks are worth against their parameters. A mapping of names to trainings: the
        validation loss of each.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it in the colours of the page; `savefig` writes it.

    Raises
    ------
    SettingsError
        If there is no figure of such a result.

    Examples
    --------
    >>> from topiarist import TrainConfig, load_data, models, plot, train
    >>> history = train(models.mlp([4, 8, 3]), load_data("iris"), TrainConfig(epochs=2))
    >>> plot(history).get_suptitle()
    'Loss'
    """
    kinds = "a History, an Outcome, a Rightsizing or Results"
    raise SettingsError(f"plot draws {kinds}; found {type(result).__name__}")


@plot.register
def _(history: History) -> Figure:
    losses: dict[str, Run] = {
        "training": [epoch.train_loss for epoch in history.epochs],
        "validation": [epoch.validation_loss for epoch in history.epochs],
    }
    known = {name: [run] for name, run in losses.items() if any(value is not None for value in run)}
    return learning_curves(known, title="Loss", y_label="loss").figure


@plot.register
def _(histories: Mapping) -> Figure:  # type: ignore[type-arg]
    runs = {str(name): [[epoch.validation_loss for epoch in history.epochs]] for name, history in histories.items()}
    return learning_curves(runs, title="Loss on the validation part", y_label="validation loss").figure


@plot.register
def _(outcome: Outcome) -> Figure:
    if outcome.lineage is not None:
        return topology_over_time(outcome.lineage).figure
    if not outcome.histories:
        raise SettingsError("there is nothing to draw: this method neither trained nor evolved; print the outcome")
    return plot({f"round {number}": history for number, history in enumerate(outcome.histories, 1)})


@plot.register
def _(result: Rightsizing) -> Figure:
    return front_drawing(result.record, "parameters", spots_of(result.record, "parameters")).figure


@plot.register
def _(results: Results) -> Figure:
    summary = results.summary().set_index("configuration")
    points = [
        Point(
            name=str(row["configuration"]),
            size=row["parameters"],
            score=row[results.primary],
            spread=summary["sd"][row["configuration"]],
            front=row["front"],
            knee=row["knee"],
        )
        for row in results.front().table.to_dict("records")
    ]
    label = f"mean {results.primary}"
    return pareto_figure(points, size_label="parameters", score_label=label, title=results.folder.name).figure
