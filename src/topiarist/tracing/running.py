"""How a network is run on an example: its arguments, a copy that may be used freely, and kernels that hide nothing."""

import gc
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from topiarist.errors import ModelError, TopiaristError, first_line
from topiarist.models.copying import copying, detached_tensors
from topiarist.models.evaluation import QUANTISED, evaluating, first_of_kind, numbers_of, placed
from topiarist.models.rebinding import rebind_functions
from topiarist.randomness import isolated
from topiarist.tracing.operation import line_of_error

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Inputs = Tensor | Sequence[Any] | Mapping[str, Any]
ExampleInput = Inputs | Callable[[nn.Module], Any]  # a function runs the network that it is given
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}


def described(model: nn.Module, place: str) -> str:
    """Name a module and its class in an error."""
    return f"'{place}' ({type(model.get_submodule(place)).__name__})" if place else "the network's forward"


def check_runnable(model: nn.Module) -> None:
    """Refuse networks that are wrapped or compiled, or have no values yet, and what is no network."""
    if not isinstance(model, nn.Module):
        raise ModelError(f"a network is a torch.nn.Module; found {type(model).__name__}")
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError(
            "the network is compiled by torch.jit, and cannot change: pass the module that it was made from"
        )
    if (wrapper := type(model).__name__) in _WRAPPERS:
        raise ModelError(f"the network is wrapped in {wrapper}: pass the one inside, model.{_WRAPPERS[wrapper]}")
    check_unquantised(model)
    for name, module in model.named_modules():
        if any(is_lazy(parameter) for parameter in module.parameters(recurse=False)):
            raise ModelError(f"{described(model, name)} has no values yet: run the network on a batch first")


def check_unquantised(model: nn.Module) -> None:
    """Refuse a network with layers of torch's that compute in 8 bits: their weights are no parameters."""
    if (name := first_of_kind(model, QUANTISED)) is not None:
        raise ModelError(
            f"a quantised network cannot be cut: {described(model, name)} has packed weights of 8 bits;"
            " cut the network first, and quantise it after"
        )


def arguments(model: nn.Module, example_input: ExampleInput) -> tuple[Args, Kwargs]:
    """Return an example input as the arguments of a call: a tensor, a sequence of arguments, or a mapping by name."""
    like = numbers_of(model)

    def fit(value: Any) -> Any:
        return placed(value, like).clone() if isinstance(value, Tensor) else value  # forward may write into it

    if isinstance(example_input, Tensor):
        return (fit(example_input),), {}
    if isinstance(example_input, Mapping):
        return (), {name: fit(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)):
        return tuple(fit(value) for value in example_input), {}
    kind = type(example_input).__name__
    raise ModelError(
        f"example_input must be a tensor, a sequence or a mapping of tensors, or a function that runs the network;"
        f" found {kind}"
    )


def call(model: nn.Module, example_input: ExampleInput) -> Any:
    """Run a network on an example."""
    if callable(example_input) and not isinstance(example_input, Tensor):
        return example_input(model)
    args, kwargs = arguments(model, example_input)
    return model(*args, **kwargs)


def named_inputs(model: nn.Module, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    """Return the arguments of a call by the names that forward has for them."""
    try:
        given = inspect.signature(model.forward).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ModelError(f"the example input does not fit {type(model).__name__}.forward: {error}") from error
    return {name.lstrip("*"): value for name, value in given.arguments.items()}


def with_padding(model: nn.Module, example_input: Inputs) -> dict[str, Tensor] | None:
    """Return an example for a language model with a mask for one token of padding; None for others, or with a mask.

    Models of the hub take another way through their code where there is padding, and other integers along it.
    """
    given = named_inputs(model, *arguments(model, example_input))
    tokens = given.get("input_ids")
    takes_mask = "attention_mask" in inspect.signature(model.forward).parameters and "attention_mask" not in given
    if not takes_mask or not isinstance(tokens, Tensor) or tokens.ndim != 2 or tokens.shape[1] < 2:
        return None
    mask = torch.ones_like(tokens)
    mask[:, 0] = 0
    return {**given, "attention_mask": mask}


@contextmanager
def own_errors(where: Callable[[BaseException], str]) -> Iterator[None]:
    """Turn whatever a user's forward raises into one line that says where it was raised."""
    try:
        yield
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        reason = first_line(error)
        place = where(error)
        raise ModelError(f"the example input fails at {place}{line_of_error(error)}: {reason}") from error


@contextmanager
def plain_kernels(model: nn.Module) -> Iterator[None]:
    """Switch off fused kernels, which hide what they compute: attention, encoder layers, recurrent layers."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
        if any(isinstance(module, nn.RNNBase) for module in model.modules()):
            stack.enter_context(_without_libraries())
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


@contextmanager
def _without_libraries() -> Iterator[None]:
    """Let torch compute recurrent layers itself; `mkldnn.flags` would warn of what it sets besides."""
    libraries: Any = (torch.backends.mkldnn, torch.backends.cudnn)
    before = [library.enabled for library in libraries]
    try:
        for library in libraries:
            library.enabled = False
        yield
    finally:
        for library, enabled in zip(libraries, before, strict=True):
            library.enabled = enabled


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for unused circles of objects: many are made here, and it searches all of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def quietly(model: nn.Module) -> Iterator[None]:
    """Run a network in evaluation mode, without gradients and without touching the global random state."""
    with evaluating(model), isolated(0, numbers_of(model).device), plain_kernels(model):
        yield


def sharing_copy(model: nn.Module) -> nn.Module:
    """Copy a network, but not the values of its parameters: forward may count, remember or write into buffers.

    Several times as fast as `deepcopy`, which only classes with a way of their own to be copied need. The parameters
    are other objects than the network's, so that code which holds on to the network itself can be told apart.
    """
    with copying():
        memo: dict[int, Any] = {id(parameter): _twin(parameter) for parameter in model.parameters()}
        memo |= detached_tensors(model)
        if not all(_copies_plainly(type(module)) for module in model.modules()):
            copy = deepcopy(model, memo)
            rebind_functions(model, copy)
            return copy
        copies = {module: type(module).__new__(type(module)) for module in model.modules()}
        memo |= {id(module): copy for module, copy in copies.items()}
        for module, copy in copies.items():
            for name, value in vars(module).items():
                if name == "_modules":
                    vars(copy)[name] = {child: None if own is None else copies[own] for child, own in value.items()}
                elif name == "_parameters":
                    vars(copy)[name] = {key: None if own is None else memo[id(own)] for key, own in value.items()}
                elif name in _OF_EVERY_MODULE and not value:
                    vars(copy)[name] = value.copy() if isinstance(value, dict) else value
                else:
                    vars(copy)[name] = deepcopy(value, memo)
        rebind_functions(model, copies[model])
        return copies[model]


def _twin(parameter: nn.Parameter) -> nn.Parameter:
    """Return another parameter with the same values, at the same place in memory."""
    twin = nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad)
    vars(twin).update(vars(parameter))
    return twin


def _copies_plainly(kind: type) -> bool:
    names = ("__new__", "__reduce__", "__reduce_ex__")
    return not hasattr(kind, "__deepcopy__") and all(getattr(kind, name) is getattr(object, name) for name in names)


def reads_its_mode(model: nn.Module) -> bool:
    """Return whether code of the user's, not of torch's layers, asks whether the network is in training."""
    kinds = {kind for module in model.modules() for kind in type(module).__mro__ if kind is not object}
    functions = (
        value
        for kind in kinds
        if not kind.__module__.startswith("torch.")
        for value in vars(kind).values()
        if inspect.isfunction(value)
    )
    return any("training" in function.__code__.co_names for function in functions)
