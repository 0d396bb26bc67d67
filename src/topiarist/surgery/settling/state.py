"""What settling may change in a network, and the modes that its layers are in meanwhile."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.models.buffers import keeping_buffers

Values = Sequence[Tensor]


@dataclass(frozen=True)
class Settleable:
    """The parameters of a network that are not frozen, and the batch norms whose statistics can follow them.

    Parameters that several layers share are there once, and stay shared.
    """

    model: nn.Module
    parameters: dict[str, nn.Parameter]
    norms: dict[str, _BatchNorm]

    @classmethod
    def of(cls, model: nn.Module) -> "Settleable":
        """Return what may change in a network, in memory of its own: other networks may share the old one."""
        named = model.named_parameters()
        parameters = {name: own for name, own in named if own.requires_grad and own.is_floating_point()}
        norms = {name: module for name, module in model.named_modules() if _can_follow(module)}
        for own in parameters.values():
            own.data = own.detach().clone()
        for module in norms.values():
            for name in ("running_mean", "running_var"):
                module._buffers[name] = module.get_buffer(name).clone()
        return cls(model, parameters, norms)

    def tensors(self) -> dict[str, Tensor]:
        """Return all that may change, by name."""
        found: dict[str, Tensor] = dict(self.parameters)
        for path, module in self.norms.items():
            for name in ("running_mean", "running_var"):
                found[f"{path}.{name}" if path else name] = module.get_buffer(name)
        return found

    def values(self) -> list[Tensor]:
        """Return copies of all that may change."""
        return [tensor.detach().clone() for tensor in self.tensors().values()]

    def put(self, values: Values) -> None:
        """Write values into all that may change."""
        with torch.no_grad():
            for tensor, value in zip(self.tensors().values(), values, strict=True):
                tensor.copy_(value)

    def learn(self, *, following: bool) -> None:
        """Put layers in the mode to learn in: all as they are used, but batch norms that follow what they read."""
        self.judge()
        for module in self.norms.values():
            module.training = following
        for each in self.model.modules():
            if isinstance(each, nn.RNNBase) and not each.dropout:  # some libraries have no gradient otherwise
                each.training = True

    def judge(self) -> None:
        """Put all layers in the mode that they are used in."""
        self.model.eval()

    @contextmanager
    def kept_apart(self) -> Iterator[None]:
        """Restore modes, and buffers other than the statistics of batch norms afterwards."""
        modes = [(module, module.training) for module in self.model.modules()]
        first = last = self.values()
        try:
            with keeping_buffers(self.model):
                try:
                    yield
                    last = self.values()
                except BaseException:
                    last = first
                    raise
        finally:
            self.put(last)
            for module, training in modes:
                module.training = training


def _can_follow(module: nn.Module) -> bool:
    """Return whether a layer is a batch norm with statistics that are not frozen with its weights."""
    if not isinstance(module, _BatchNorm) or isinstance(module, nn.SyncBatchNorm) or module.running_mean is None:
        return False
    return all(own.requires_grad for own in module.parameters(recurse=False))
