"""One run of a network under watch: labels, the order of layers, and what the code asks of its integers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.hooks import RemovableHandle

from topiarist.errors import ModelError
from topiarist.models.attention import with_free_attention
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of
from topiarist.randomness import generator
from topiarist.tracing.attributes import follows_parameters, is_layer, track_integers
from topiarist.tracing.caches import without_caches
from topiarist.tracing.constraints import Constraint, IntegerWatch
from topiarist.tracing.hooks import watch_hooks
from topiarist.tracing.integers import Attribute
from topiarist.tracing.random_weights import randomised, resized
from topiarist.tracing.recurrences import Recurrences
from topiarist.tracing.running import (
    ExampleInput,
    Inputs,
    arguments,
    check_runnable,
    described,
    named_inputs,
    own_errors,
    quietly,
    reads_its_mode,
    sharing_copy,
    with_padding,
)
from topiarist.tracing.steps import LayerCall, Step
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.unregistered import fix_unregistered
from topiarist.tracing.vectors import Axes

MOST_RUNS = 8  # with random weights, for parameters that the first run does not reach
MORE_SAMPLES = 8  # times those of the example, in such a run
# What the hub's models return beside what they are run for, by the ends of names
BESIDES = ("hidden_state", "hidden_states", "attentions", "past_key_values", "_cache", "router_logits")


@dataclass
class Trace:
    """What one run showed."""

    tracer: Tracer
    constraints: list[Constraint]
    integers: dict[Attribute, int]
    calls: dict[str, LayerCall] = field(default_factory=dict)
    output: Step = field(default_factory=lambda: Step("output", "output"))
    samples: int = 1
    changed_by_hooks: dict[str, None] = field(default_factory=dict)  # modules whose hooks change values, in order

    @property
    def unreached(self) -> tuple[str, ...]:
        """Name the parameters that no run has used."""
        leaves = self.tracer.leaves.items()
        return tuple(name for name, leaf in leaves if not leaf.users and isinstance(leaf.tensor, nn.Parameter))


def run_traced(model: nn.Module, example_input: ExampleInput) -> Trace:
    """Run a copy of a network, which shares its parameters, on an example, and follow all that it does.

    Where the run leaves parameters out, as it does experts that it does not choose, the network runs again with random
    weights, as long as that reaches more of them; once in training mode, where its code asks for the mode; and once
    with padding, where it takes a mask of tokens that the example does not have.
    """
    check_runnable(model)
    copy = _copy_to_follow(model)
    tracer = Tracer(copy)
    tracer.know_original(model)
    fix_unregistered(copy, tracer)
    trace = Trace(tracer, [], track_integers(copy))
    trace.changed_by_hooks = watch_hooks(copy)
    _follow(copy, example_input, trace, tracer)
    if not tracer.reached and tracer.originals_used:
        raise ModelError(tracer.held_on(tracer.originals_used[0]))
    if not callable(example_input):
        _run_more(model, example_input, trace)
    tracer.fix_unused()
    return trace


def _run_more(model: nn.Module, example_input: Inputs, trace: Trace) -> None:
    """Run a network in other ways, where it may take another way through its code."""
    for seed in range(MOST_RUNS):
        left = trace.unreached
        if left:
            _run_again(randomised(model, numbers_of(model).dtype, seed), example_input, trace, more=MORE_SAMPLES)
        if len(trace.unreached) == len(left):
            break
    if trace.unreached or reads_its_mode(model):
        other = copied(model)  # in training, forward may write into parameters
        with_free_attention(other)
        _run_again(other, example_input, trace, more=2 if _has_batch_norms(other) else 1, training=True)
    padded = with_padding(model, example_input)
    if padded is not None:
        _run_again(_copy_to_follow(model), padded, trace)


def _has_batch_norms(model: nn.Module) -> bool:
    """Return whether there are batch norms, which take no single sample in training."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def _copy_to_follow(model: nn.Module) -> nn.Module:
    copy = sharing_copy(model)
    with_free_attention(copy)
    return copy


def _run_again(other: nn.Module, example_input: Inputs, trace: Trace, *, more: int = 1, training: bool = False) -> None:
    """Run a copy on so many times the samples, and let what that shows count too; a failure shows nothing."""
    track_integers(other)
    tracer = Tracer(other, like=trace.tracer)
    fix_unregistered(other, tracer)
    again = replace(trace, tracer=tracer, calls={}, output=Step("output", "output"))
    args, kwargs = arguments(other, example_input)
    random, size = generator(0, "more samples"), more * trace.samples
    args, kwargs = tree_map(lambda value: resized(value, trace.samples, size, random), (args, kwargs))
    with suppress(ModelError):
        _follow(other, lambda network: network(*args, **kwargs), again, tracer, training=training)
    for path, call in again.calls.items():
        trace.calls.setdefault(path, call)


def _follow(
    model: nn.Module, example_input: ExampleInput, trace: Trace, tracer: Tracer, *, training: bool = False
) -> None:
    """Run a network, and fix the units of what it returns."""
    watch = IntegerWatch(tracer, trace.constraints)
    with (
        quietly(model),
        _watched(model, trace, watch),
        without_caches(model),
        own_errors(lambda error: described(model, tracer.failed_module(error))),
    ):
        model.train(training)
        try:
            given = _run(model, example_input, trace, watch)
        finally:
            tracer.restore_values()
    for tensor in wanted_outputs(given):
        step = tracer.step_of(tensor)
        trace.output.take([] if step is None else [step])
        for vector in tracer.axes(tensor):
            if vector is not None:
                tracer.labels.fix(vector, "the network's output")


def _run(model: nn.Module, example_input: ExampleInput, trace: Trace, watch: IntegerWatch) -> Any:
    if callable(example_input) and not isinstance(example_input, Tensor):
        with trace.tracer, Recurrences(trace.tracer), watch:
            return example_input(model)
    args, kwargs = arguments(model, example_input)
    _name_inputs(model, trace, args, kwargs)
    with trace.tracer, Recurrences(trace.tracer), watch:
        return model(*args, **kwargs)


def _name_inputs(model: nn.Module, trace: Trace, args: Any, kwargs: Any) -> None:
    """Remember which tensors are the network's inputs, by the names that forward has for them."""
    for name, value in named_inputs(model, args, kwargs).items():
        for tensor in tensors_in(value):
            if trace.tracer.step_of(tensor) is None:
                trace.tracer.set_step(tensor, Step("input", name, source=name))
                trace.samples = len(tensor) if tensor.ndim and trace.samples == 1 else trace.samples


def wanted_outputs(given: Any) -> list[Tensor]:
    """Return the tensors that a network is run for: of the hub's models with scores, not what they return besides."""
    if hasattr(given, "to_tuple") and isinstance(getattr(given, "logits", None), Tensor):
        return tensors_in([value for name, value in given.items() if not name.endswith(BESIDES)])
    return tensors_in(given)


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in what a network takes or returns, also in objects such as outputs of the hub's models."""
    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    leaves = tree_leaves(value)
    found = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    for leaf in leaves:
        if not isinstance(leaf, Tensor) and hasattr(leaf, "__dict__") and not isinstance(leaf, (nn.Module, type)):
            found += [tensor for tensor in tree_leaves(vars(leaf)) if isinstance(tensor, Tensor)]
    return found


@contextmanager
def _watched(model: nn.Module, trace: Trace, watch: IntegerWatch) -> Iterator[None]:
    """Follow which module is running, and which layer."""
    handles: list[RemovableHandle] = []
    try:
        for path, module in model.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):
                handles += _hook(path, module, trace, watch)
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(path: str, module: nn.Module, trace: Trace, watch: IntegerWatch) -> list[RemovableHandle]:
    tracer, layer, following = trace.tracer, is_layer(module), follows_parameters(module)

    def enter(_: nn.Module, args: Any, kwargs: Any) -> None:
        if path:
            tracer.modules.append(path)
        else:  # a function may run the network, on tensors of its own
            _name_inputs(module, trace, args, kwargs)
        if layer and tracer.layer is None:
            tracer.layer = Step("layer", path, tuple(tracer.modules))
            taken = (tracer.step_of(tensor) for tensor in tensors_in((args, kwargs)))
            tracer.layer.take(step for step in taken if step is not None)
            watch.quiet = following

    def leave(_: nn.Module, args: Any, kwargs: Any, given: Any) -> None:
        error = sys.exception() if given is None else None
        if error is not None:  # forward may catch it and go on
            tracer.note_failure(error)
        step = tracer.layer
        if layer and step is not None and step.name == path:
            tracer.layer, watch.quiet = None, False
            tensors = tensors_in(given)
            for tensor in tensors:
                tracer.set_step(tensor, step)
            taken = next(iter(tensors_in((args, kwargs))), None)
            if tensors:
                known = trace.calls.get(path)
                call = _layer_call(step, tensors[0], taken, tracer.axes(tensors[0]), known)
                earlier = () if known is None else known.read
                trace.calls[path] = replace(call, read=(*earlier, [] if taken is None else tracer.axes(taken)))
        if path:
            tracer.modules.pop()

    first = module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
    return [first, module.register_forward_hook(leave, with_kwargs=True, always_call=True)]


def _layer_call(step: Step, given: Tensor, taken: Tensor | None, axes: Axes, before: LayerCall | None) -> LayerCall:
    """Return a layer's call, together with those before it."""
    read = 0 if taken is None else taken.numel()
    if before is not None:
        elements, read = before.elements + given.numel(), before.taken + read
        return replace(before, count=before.count + 1, elements=elements, taken=read)
    places = [place - given.ndim for place, vector in enumerate(axes) if vector is not None]
    axis = places[-1] if places else None
    return LayerCall(step, tuple(given.shape), axis, 1, given.numel(), read)
