"""Puts layers into a network, and takes them out, where its own code allows it."""

from collections import OrderedDict
from collections.abc import Mapping

from torch import nn

from topiarist.errors import ModelError
from topiarist.tracing.spaces import unused
from topiarist.tracing.steps import Step


def find_layer(model: nn.Module, path: str) -> nn.Module:
    """Return a layer by name."""
    try:
        return model.get_submodule(path)
    except AttributeError as error:
        raise ModelError(f"the network has no layer '{path}'") from error


def parent_of(model: nn.Module, path: str) -> tuple[nn.Module, str]:
    """Return the module that holds a layer, and the layer's name in it."""
    if not path:
        raise ModelError("the network itself cannot be replaced: name one of its layers")
    layer = find_layer(model, path)
    others = [name for name, module in model.named_modules(remove_duplicate=False) if module is layer and name != path]
    if others:
        raise ModelError(f"'{path}' is the same layer as '{others[0]}': a layer with two names cannot be replaced")
    above, _, name = path.rpartition(".")
    return model.get_submodule(above), name


def insert_after(model: nn.Module, path: str, step: Step, layers: Mapping[str, nn.Module]) -> None:
    """Put layers right after a layer: next to it in a sequence, or together with it in a new one."""
    parent, name = parent_of(model, path)
    if not _runs_in_order(parent, path, step):
        layer = model.get_submodule(path)
        parent._modules[name] = _in_mode_of(layer, nn.Sequential(OrderedDict(layer=layer, **layers)))
        return
    ordered: dict[str, nn.Module | None] = {}
    for known, module in parent._modules.items():
        ordered[known] = module
        if known == name:
            ordered |= {unused(f"{name}_{new}", parent._modules, joint=""): layer for new, layer in layers.items()}
    parent._modules.clear()
    parent._modules.update(ordered)


def take_out(model: nn.Module, path: str, step: Step) -> None:
    """Take a layer out of a sequence; elsewhere, let it do nothing."""
    parent, name = parent_of(model, path)
    if _runs_in_order(parent, path, step):
        del parent._modules[name]
    else:
        parent._modules[name] = _in_mode_of(model.get_submodule(path), nn.Identity())


def replace_layer(model: nn.Module, path: str, layer: nn.Module) -> None:
    """Put a layer in the place of another."""
    parent, name = parent_of(model, path)
    parent._modules[name] = layer


def _runs_in_order(parent: nn.Module, path: str, step: Step) -> bool:
    """Return whether a layer runs as part of a plain `nn.Sequential`, which runs whatever is put into it."""
    called = path.rpartition(".")[0] in step.modules
    return called and type(parent).forward is nn.Sequential.forward


def _in_mode_of(layer: nn.Module, container: nn.Module) -> nn.Module:
    """Return a module that has, but not those inside it, the mode of a layer: training or evaluation."""
    container.training = layer.training
    return container


def read_by(model: nn.Module, name: str) -> str | None:
    """Name the module of torch that reads a layer's weight itself, where a pair of layers has none; None for others."""
    above = name.rpartition(".")[0]
    reads = isinstance(model.get_submodule(above), (nn.MultiheadAttention, nn.TransformerEncoderLayer))
    return above if reads else None
