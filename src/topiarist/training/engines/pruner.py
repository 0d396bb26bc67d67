"""Prunes a network while it is trained: chooses masks when the schedule says so, and holds them after every step."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from topiarist.errors import SettingsError
from topiarist.models import card_of
from topiarist.models.evaluation import kernels_of, under
from topiarist.surgery.choice.weights import UnitWeights, choose_by_layer, choose_overall, choose_pattern, unit_weights
from topiarist.surgery.masks import Masks
from topiarist.training.engines.steps import State, flattened
from topiarist.training.pruning import Pruning


class Pruner:
    """The masks of one network in training; `prunings` are the sparsities by the number of epochs done before.

    Call `before_epoch` with the number of epochs done, `after_backward` and `after_step` in every step.
    """

    def __init__(
        self, model: nn.Module, pruning: Pruning, prunings: Mapping[int, float], *, example_input: Tensor
    ) -> None:
        self.model, self.pruning, self.prunings = model, pruning, prunings
        self.kernels = prunable(model)
        self.spaces = unit_weights(model, example_input) if pruning.units else {}
        if not (self.spaces if pruning.units else self.kernels):
            raise SettingsError("there is nothing to prune: the network has no kernels that are trained")
        group = 1 if pruning.pattern is None else pruning.pattern[1]
        if all(kernel[0].numel() < group for kernel in self.kernels.values()):
            raise SettingsError(f"no unit reads {group} weights, of which a pattern could make some zero")
        summed = {} if pruning.score == "magnitude" else self.kernels
        self.sums = {name: torch.zeros_like(kernel) for name, kernel in summed.items()}
        self.unit_masks = {name: torch.ones(space.size, dtype=torch.bool) for name, space in self.spaces.items()}
        pruned = card_of(model).bits is not None  # before: its zeros are held from the start
        masks = {name: (kernel.detach() != 0) | (not pruned) for name, kernel in self.kernels.items()}
        self.masks = Masks(model, masks)

    @property
    def sparsity(self) -> float:
        """The fraction of the kernels' weights, or of units, that is pruned."""
        masks = self.unit_masks if self.pruning.units else self.masks.masks
        total = sum(mask.numel() for mask in masks.values())
        return sum(int((~mask).sum()) for mask in masks.values()) / total

    def before_epoch(self, done: int) -> None:
        """Prune where the schedule says so."""
        if done not in self.prunings:
            return
        if self.pruning.units:
            self._prune_units(self.prunings[done])
        else:
            self.masks = Masks(self.model, self._chosen(self._scores(), self.masks.masks, self.prunings[done]))
        if self.pruning.score == "taylor":
            for total in self.sums.values():
                total.zero_()

    def _chosen(self, scores: Mapping[str, Tensor], masks: Mapping[str, Tensor], sparsity: float) -> State:
        if self.pruning.pattern is not None:
            _, group = self.pruning.pattern
            return choose_pattern(scores, masks, zeros=round(sparsity * group), group=group)
        choose = choose_by_layer if self.pruning.scope == "layer" else choose_overall
        return choose(scores, masks, sparsity)

    def _scores(self) -> State:
        """Return the scores of all weights: their magnitude where nothing was trained since the last pruning."""
        if any(bool(total.any()) for total in self.sums.values()):
            return self.sums
        return {name: kernel.detach().abs() for name, kernel in self.kernels.items()}

    def _prune_units(self, sparsity: float) -> None:
        scores = self._scores()
        by_unit = {name: space.summed(scores, squared=not self.sums) for name, space in self.spaces.items()}
        self.unit_masks = self._chosen(by_unit, self.unit_masks, sparsity)
        self.masks = Masks(self.model, _masks_of_units(self.model, self.spaces, self.unit_masks))

    @torch.no_grad()
    def after_backward(self) -> None:
        """Add the gradients of a step to the scores."""
        for name, total in self.sums.items():
            kernel = self.kernels[name]
            if kernel.grad is None:
                continue
            if self.pruning.score == "taylor":
                total.add_((kernel * kernel.grad).abs_())
            else:
                total.addcmul_(kernel, kernel.grad, value=-1)

    def after_step(self) -> None:
        """Hold the masks."""
        self.masks.step()

    def state(self) -> State:
        """Return all that a checkpoint needs."""
        return flattened({"mask": self.masks.masks, "unit": self.unit_masks, "sum": self.sums})

    def load(self, state: State) -> None:
        """Take up what `state` returned."""
        self.masks, self.unit_masks = Masks(self.model, under("mask/", state)), under("unit/", state)
        for name, total in under("sum/", state).items():
            self.sums[name].copy_(total)


def prunable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the kernels of a network that are trained; biases, norms and frozen layers are left alone."""
    return {name: kernel for name, kernel in kernels_of(model).items() if kernel.requires_grad}


def _masks_of_units(model: nn.Module, spaces: Mapping[str, UnitWeights], kept: Mapping[str, Tensor]) -> State:
    """Return masks that make units zero: their rows of kernels, their biases, and their entries in norms."""
    parameters = dict(model.named_parameters())
    masks: State = {}
    for name, space in spaces.items():
        for place in space.silenced:
            mask = masks.setdefault(place.parameter, torch.ones_like(parameters[place.parameter], dtype=torch.bool))
            mask[place.rows[~kept[name]].flatten()] = False
    return masks
