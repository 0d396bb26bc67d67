"""Recurrent layers of a cut network: weights that bring their gates back to what they were, step by step.

What a gate is before its activation, z = W x + U h + b, is linear in what the layer reads and in its own last state.
The targets are z in the whole network. The features are what is read in the cut one, and the states: at first those of
the whole network, so that no error of an earlier step is learnt from; then those that the layer really comes to with
the weights found so far. Of all rounds, the weights whose states are nearest to those of the whole network are kept;
the weights as they were cut count as a round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from topiarist.surgery.refit.moments import Moments
from topiarist.surgery.refit.walking import Visit

ROUNDS = 3  # the first with the states of the whole network; later ones gain little
ENOUGH_ROWS, ROWS_PER_FEATURE = 2**15, 32  # of samples × steps, as many as for layers of images
_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
Weights = Mapping[str, Tensor]  # by the first part of their names


def is_recurrent(module: nn.Module) -> bool:
    """Return whether a layer is one of torch's recurrent ones, with its own forward."""
    return isinstance(module, nn.RNNBase) and type(module) in (nn.LSTM, nn.GRU, nn.RNN)


@dataclass(frozen=True)
class Sequences:
    """Sequences of one length (n_sequences, n_steps, n_features), with the states that they begin with."""

    x: Tensor
    first: tuple[Tensor, ...] | None = None  # each (n_layers · n_directions, n_sequences, n_units)

    def state(self, number: int, units: int, cells: int | None) -> tuple[Tensor, ...]:
        """Return the first state of a layer in one direction, each (n_sequences, n_units); zeros where none is."""
        if self.first is not None:
            return tuple(each[number] for each in self.first)
        sizes = (units,) if cells is None else (units, cells)
        return tuple(self.x.new_zeros(len(self.x), size) for size in sizes)


def sequences_of(module: Any, taken: Any, first: Any) -> Iterator[Sequences]:
    """Yield what a recurrent layer is called with, sequences of the same length together."""
    states = None if first is None else (first,) if isinstance(first, Tensor) else tuple(first)
    if isinstance(taken, PackedSequence):
        padded, lengths = pad_packed_sequence(taken, batch_first=True)
        for length in sorted(set(lengths.tolist())):
            there = (lengths == length).nonzero().flatten().to(padded.device)
            yield Sequences(
                padded[there, :length], None if states is None else tuple(each[:, there] for each in states)
            )
        return
    if taken.dim() == 2:  # one sequence
        states = None if states is None else tuple(each.unsqueeze(1) for each in states)
        yield Sequences(taken.unsqueeze(0), states)
        return
    yield Sequences(taken if module.batch_first else taken.transpose(0, 1), states)


@dataclass(frozen=True)
class Direction:
    """One layer of a recurrent module in one direction: its number among all, the end of its names, its weights."""

    module: Any
    number: int
    suffix: str
    weights: Weights

    @property
    def units(self) -> int:
        """Return how many numbers a state has that is handed on."""
        return self.weights["weight_hh"].shape[1]

    @property
    def cells(self) -> int | None:
        """Return how many cells there are; None where the layer has none."""
        return self.weights["weight_hh"].shape[0] // 4 if self.module.mode == "LSTM" else None

    def run(self, x: Tensor, first: tuple[Tensor, ...]) -> Tensor:
        """Return the states after each step (n_sequences, n_steps, n_units)."""
        flat = [self.weights[part] for part in _PARTS if part in self.weights]
        begin = tuple(each.unsqueeze(0).contiguous() for each in first)
        forward = getattr(torch._VF, self.module.mode.lower())
        states = begin if self.module.mode == "LSTM" else begin[0]
        found: Tensor = forward(x, states, flat, self.module.bias, 1, 0.0, False, False, True)[0]
        return found

    def gates(self, x: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the gates get from the input and from the last state, before their activations."""
        bias = self.weights.get
        return (
            nn.functional.linear(x, self.weights["weight_ih"], bias("bias_ih")),
            nn.functional.linear(last, self.weights["weight_hh"], bias("bias_hh")),
        )

    def hidden(self, x: Tensor, last: Tensor, first: tuple[Tensor, ...]) -> Tensor:
        """Return what cells return before it is projected (n_sequences, n_steps, n_cells)."""
        entered, forgotten, new, opened = torch.stack(self.gates(x, last)).sum(0).chunk(4, -1)
        cell, cells = first[1], []
        for step in range(x.shape[1]):
            cell = forgotten[:, step].sigmoid() * cell + entered[:, step].sigmoid() * new[:, step].tanh()
            cells.append(cell)
        return opened.sigmoid() * torch.stack(cells, 1).tanh()


def directions_of(module: Any, layer: int) -> list[Direction]:
    """Return the directions of one layer of a recurrent module."""
    found = []
    for way in range(2 if module.bidirectional else 1):
        suffix = f"_l{layer}" + ("_reverse" if way else "")
        names = [part for part in _PARTS if f"{part}{suffix}" in module._parameters]
        weights = {part: module._parameters[f"{part}{suffix}"].detach() for part in names}
        found.append(Direction(module, layer * (2 if module.bidirectional else 1) + way, suffix, weights))
    return found


def turned(x: Tensor, direction: Direction) -> Tensor:
    """Return sequences in the order in which a direction reads them, or back."""
    return x.flip(1) if direction.suffix.endswith("_reverse") else x


def behind_first(first: Tensor, states: Tensor) -> Tensor:
    """Return the state before each step."""
    return torch.cat([first.unsqueeze(1), states[:, :-1]], 1)


class RecurrentFit:
    """All weights of a recurrent module, layer by layer and in each direction, by least squares on its gates."""

    def __init__(self, path: str, whole: Any, cut: Any, rows: Mapping[str, Tensor]) -> None:
        self.whole, self.cut = whole, cut
        self.rows = {name.removeprefix(f"{path}."): kept for name, kept in rows.items() if name.startswith(f"{path}.")}
        self.before: list[Sequences] = []
        self.now: list[Sequences] = []

    def add(self, before: Visit, now: Visit) -> None:
        """Add what is read in both networks."""
        for module, visit, seen in ((self.whole, before, self.before), (self.cut, now, self.now)):
            for taken, first in zip(visit.taken, visit.states, strict=True):
                seen += sequences_of(module, taken, first)

    def values(self) -> dict[str, Tensor]:
        """Return the weights of all layers."""
        fitted: dict[str, Tensor] = {}
        before, now = self.before, self.now
        for layer in range(self.whole.num_layers if before else 0):
            old, new = directions_of(self.whole, layer), directions_of(self.cut, layer)
            fits = [_DirectionFit(*pair, self.rows, before, now) for pair in zip(old, new, strict=True)]
            for fit in fits:
                found = fit.solve()
                fitted |= {f"{part}{fit.cut.suffix}": tensor for part, tensor in found.items()}
            before = _joined(before, [fit.targets for fit in fits])
            now = _joined(now, [fit.best_states for fit in fits])
        return fitted


def _joined(sequences: Sequence[Sequences], states: Sequence[list[Tensor]]) -> list[Sequences]:
    """Return what the next layer reads: the states of all directions beside each other."""
    return [replace(each, x=torch.cat(parts, -1)) for each, *parts in zip(sequences, *states, strict=True)]


class _DirectionFit:
    """One layer in one direction."""

    def __init__(
        self,
        whole: Direction,
        cut: Direction,
        rows: Mapping[str, Tensor],
        before: Sequence[Sequences],
        now: Sequence[Sequences],
    ) -> None:
        self.whole, self.cut = whole, cut
        every = torch.arange(len(whole.weights["weight_ih"]))
        self.kept = rows.get(f"weight_ih{whole.suffix}", every).cpu()  # of the gates
        cells = len(every) // _gates(whole)
        self.kept_cells = self.kept[self.kept < cells]
        projected = torch.arange(whole.units) if "weight_hr" in whole.weights else self.kept_cells
        self.kept_states = rows.get(f"weight_hr{whole.suffix}", projected).cpu()
        self.before = [(turned(each.x, whole), each.state(whole.number, whole.units, whole.cells)) for each in before]
        self.now = [(turned(each.x, cut), each.state(cut.number, cut.units, cut.cells)) for each in now]
        self._wanted = [whole.run(*each) for each in self.before]
        self._best, self._least = self.cut, torch.inf
        self._best_states: list[Tensor] = []
        count = sum(len(x) * x.shape[1] for x, _ in self.now)
        features = cut.weights["weight_ih"].shape[1] + cut.units
        self._every = max(count // max(ENOUGH_ROWS, ROWS_PER_FEATURE * features), 1)

    @property
    def targets(self) -> list[Tensor]:
        """Return the states of the whole network, in the order of the sequences."""
        return [turned(states, self.whole) for states in self._wanted]

    @property
    def best_states(self) -> list[Tensor]:
        """Return the states with the best weights, in the order of the sequences."""
        return [turned(states, self.cut) for states in self._best_states]

    def solve(self) -> Weights:
        """Return the best weights of all rounds."""
        self._judge(self.cut)
        with_whole = [states[..., self.kept_states] for states in self._wanted]
        self._round(self.cut, with_whole)
        for _ in range(ROUNDS - 1):
            self._round(self._best, self._best_states)
        return self._best.weights

    def _judge(self, candidate: Direction) -> None:
        """Run a layer with some weights, and keep them where they are the best so far."""
        states = [candidate.run(*each) for each in self.now]
        pairs = zip(states, self._wanted, strict=True)
        error = sum(float((own - wanted[..., self.kept_states]).square().sum()) for own, wanted in pairs)
        if error < self._least:
            self._best, self._best_states, self._least = candidate, states, error

    def _round(self, start: Direction, states: Sequence[Tensor]) -> None:
        """Fit the weights where the layer comes to some states."""
        fitted = replace(start, weights={**start.weights, **self._gates_fitted(states)})
        if "weight_hr" in start.weights:
            fitted = replace(fitted, weights={**fitted.weights, "weight_hr": self._projection(fitted, states)})
        self._judge(fitted)

    def _gates_fitted(self, states: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return weights and biases of the gates; those that add up what they read share one fit."""
        both, entering, recurring = Moments(), Moments(), Moments()
        pairs = zip(self.before, self._wanted, self.now, states, strict=True)
        shared = len(self.kept) * 2 // 3 if self.cut.module.mode == "GRU" else len(self.kept)
        for (dense, dense_first), wanted, (x, first), own in pairs:
            last, dense_last = behind_first(first[0], own), behind_first(dense_first[0], wanted)
            inputs, recurrences = (each[..., self.kept] for each in self.whole.gates(dense, dense_last))
            some = slice(None, None, self._every)
            x, last, inputs, recurrences = (each.flatten(0, 1)[some] for each in (x, last, inputs, recurrences))
            both.add(torch.cat([x, last], 1), (inputs + recurrences)[:, :shared])
            if shared < len(self.kept):  # the state is gated before it is added
                entering.add(x, inputs[:, shared:])
                recurring.add(last, recurrences[:, shared:])
        return self._solved(both, entering, recurring, shared)

    def _solved(self, both: Moments, entering: Moments, recurring: Moments, shared: int) -> dict[str, Tensor]:
        old, centred = self.cut.weights, self.cut.module.bias
        inputs, recurrences = old["weight_ih"], old["weight_hh"]
        prior = torch.cat([inputs, recurrences], 1)
        weights, constants = both.solve(prior[:shared], centred=centred)
        found = {"weight_ih": weights[:, : inputs.shape[1]], "weight_hh": weights[:, inputs.shape[1] :]}
        biases = {"bias_ih": constants, "bias_hh": torch.zeros_like(constants)}
        if shared < len(inputs):
            for end, moments, start in (("ih", entering, inputs), ("hh", recurring, recurrences)):
                more, added = moments.solve(start[shared:], centred=centred)
                found[f"weight_{end}"] = torch.cat([found[f"weight_{end}"], more])
                biases[f"bias_{end}"] = torch.cat([biases[f"bias_{end}"], added])
        found |= biases if centred else {}
        return {part: tensor.to(old[part]).contiguous() for part, tensor in found.items()}

    def _projection(self, fitted: Direction, states: Sequence[Tensor]) -> Tensor:
        """Return the weights that project what the cells return."""
        moments = Moments()
        for (x, first), wanted, own in zip(self.now, self._wanted, states, strict=True):
            hidden = fitted.hidden(x, behind_first(first[0], own), first)
            some = slice(None, None, self._every)
            moments.add(hidden.flatten(0, 1)[some], wanted[..., self.kept_states].flatten(0, 1)[some])
        prior = fitted.weights["weight_hr"]
        return moments.solve(prior, centred=False)[0].to(prior).contiguous()


def _gates(direction: Direction) -> int:
    return {"LSTM": 4, "GRU": 3}.get(direction.module.mode, 1)
