"""What torch-pruning makes of a network: half of the channels by magnitude, output layers left alone.

torch-pruning has to be told which layers write the outputs. It is told in two ways, and its better result counts: the
layers that the outputs' gradients reach first, and the layer that runs last. Attention heads are not described to it,
as no unit is described to us.
"""

import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch_pruning
from torch import Tensor, nn

from benchmarks.covering.notebook import Notebook
from benchmarks.covering.outputs import answers_of, count_parameters, shapes_of
from benchmarks.covering.records import RivalAttempt
from benchmarks.covering.zeroed import compare_with_zeroed
from benchmarks.zoo import Entry, Inputs, use
from topiarist.surgery.scales import RESHAPES
from topiarist.tracing.trace import wanted_outputs

RATIO = 0.5
CONTRACTIONS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Convolution", "MkldnnConvolution", "Linear", "MkldnnRnn")
LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.RNNCellBase, nn.Embedding)


def measure_rival(entry: Entry, place: Path) -> None:
    """Measure a network; findings are in the file as soon as they are made."""
    warnings.simplefilter("ignore")
    book = Notebook(RivalAttempt(), place)
    with book.explaining():
        book.begin("make")
        model, inputs = entry.make()
        for parameter in model.parameters():  # torch-pruning follows gradients, and what is frozen has none
            parameter.requires_grad_(parameter.is_floating_point())
        book.note(parameters_before=count_parameters(model))
        shapes = shapes_of(answers_of(model, inputs))
        errors: list[Exception] = []
        for ignored in _ways(model, inputs):
            try:
                _cut(book, model, inputs, ignored, shapes)
            except Exception as error:  # the other way may do; the last error is the reason
                errors.append(error)
        if book.attempt.parameters_after is None:
            raise errors[-1]
        if not book.attempt.shapes_kept:
            raise ValueError("the shapes of the outputs changed")
        ignored = book.attempt.ignored
        book.note(reference=compare_with_zeroed(model, inputs, lambda whole, given: _smaller(whole, given, ignored)))


def _ways(model: nn.Module, inputs: Inputs) -> list[tuple[str, ...]]:
    """Return the names of layers to leave alone, in one or two ways."""
    ways = [first_reached(model, inputs), last_run(model, inputs)]
    return ways if ways[0] != ways[1] else ways[:1]


def _cut(
    book: Notebook[RivalAttempt],
    model: nn.Module,
    inputs: Inputs,
    ignored: tuple[str, ...],
    shapes: list[tuple[int, ...]],
) -> None:
    """Cut a copy of a network and write down the result where it is better than what is there."""
    first = book.attempt.parameters_after is None
    _begin(book, "cut", first)
    copy = _smaller(deepcopy(model), inputs, ignored)
    _begin(book, "run", first)
    kept = shapes_of(answers_of(copy, inputs)) == shapes
    found = book.attempt.model_copy(
        update={"parameters_after": count_parameters(copy), "shapes_kept": kept, "ignored": ignored}
    )
    if _merit(found) > _merit(book.attempt):
        book.note(parameters_after=found.parameters_after, shapes_kept=kept, ignored=ignored)


def _smaller(model: nn.Module, inputs: Inputs, ignored: tuple[str, ...]) -> nn.Module:
    """Cut a network in place, and return it."""
    torch_pruning.pruner.MagnitudePruner(
        model,
        example_inputs=inputs if isinstance(inputs, Tensor | tuple) else dict(inputs),
        importance=torch_pruning.importance.MagnitudeImportance(p=2),
        pruning_ratio=RATIO,
        ignored_layers=[model.get_submodule(name) for name in ignored],
        output_transform=_differentiable,
    ).step()
    return model


def _begin(book: Notebook[RivalAttempt], stage: str, first: bool) -> None:
    """Write down the stage, unless an earlier way has come to the end."""
    if first:
        book.begin(stage)


def _merit(attempt: RivalAttempt) -> tuple[bool, bool, float]:
    """Return what makes one result better than another: kept shapes, then a smaller network."""
    return attempt.parameters_after is not None, bool(attempt.shapes_kept), attempt.share_gone or 0.0


def _differentiable(outputs: Any) -> list[Tensor]:
    """Return the outputs that have a gradient, which is what torch-pruning starts from."""
    return [tensor for tensor in wanted_outputs(outputs) if tensor.requires_grad]


def last_run(model: nn.Module, inputs: Inputs) -> tuple[str, ...]:
    """Return the name of the layer that runs last."""
    ran: list[str] = []
    hooks = [
        layer.register_forward_hook(lambda *_, name=name: ran.append(name))
        for name, layer in model.named_modules()
        if isinstance(layer, LAYERS)
    ]
    answers_of(model, inputs)
    for hook in hooks:
        hook.remove()
    return tuple(ran[-1:])


def first_reached(model: nn.Module, inputs: Inputs) -> tuple[str, ...]:
    """Return the names of the layers that one meets first on the way back from the outputs."""
    owners: dict[int, list[str]] = {}
    for name, layer in model.named_modules():
        for parameter in layer.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(name)
    waiting = [tensor.grad_fn for tensor in _differentiable(use(model, inputs))]
    seen: set[Any] = set()
    reached: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        written_by = _parameters_of(node) if node.name().startswith(CONTRACTIONS) else []
        if written_by:
            reached.update(
                name for parameter in written_by for name in _layers_among(model, owners.get(id(parameter), []))
            )
        else:
            waiting.extend(following for following, _ in node.next_functions)
    return tuple(sorted(reached))


def _parameters_of(node: Any) -> list[nn.Parameter]:
    """Return the parameters that a product takes directly, or through a change of shape alone."""
    found = []
    for following, _ in node.next_functions:
        while following is not None and following.name().startswith(RESHAPES):
            following = following.next_functions[0][0]
        if following is not None and hasattr(following, "variable"):
            found.append(following.variable)
    return found


def _layers_among(model: nn.Module, names: list[str]) -> list[str]:
    """Return the layers among the owners of a parameter; an embedding only where nothing else owns it."""
    others = [name for name in names if not isinstance(model.get_submodule(name), nn.Embedding)]
    return [name for name in others or names if name]
