"""How good networks are with some of their units only, once the last layer is refitted to those units.

Least squares, for each choice of units, of what the whole network answers. So a unit counts for what it adds to the
others, not for the weight it happens to have, and the size at which accuracy stops rising does not depend on how many
units there were.
"""

from collections.abc import Sequence

import numpy
import torch
from torch import Tensor

from topiarist.methods.genetic.readout import Bits, Floats, Integers, one_thread, pieces
from topiarist.surgery.choice.selection import damped
from topiarist.surgery.refit.moments import Moments
from topiarist.tasks import Task

MOST_VALUES = 2**24


class RefittedNetwork:
    """Activations (n_samples, n_units) of training samples and of those to judge, the last layer, and the labels."""

    def __init__(
        self,
        fitted: Tensor,
        weights: Tensor,
        bias: Tensor | None,
        judged: Tensor,
        labels: Tensor,
        task: Task | None = None,
    ) -> None:
        moments, answers = Moments(), fitted @ weights.T
        moments.add(fitted, answers if bias is None else answers + bias)
        spread, self.cross, means, logits = moments.central(centred=bias is not None)
        self.spread, self.labels, self.task = damped(spread), labels, task
        self.logits = torch.zeros_like(logits) if bias is None else logits
        self.judged = judged.to(spread) if bias is None else judged.to(spread) - means

    def right(self, masks: Tensor) -> Tensor:
        """Count the right answers (n_masks,) after a refit to the units of each mask (n_masks, n_units).

        Of numbers and labels, sum how right the answers are.
        """
        weights = self.weights(masks)
        answers = self.judged @ weights.movedim(0, 1).flatten(1) + self.logits.repeat(len(masks))
        by_mask = answers.view(len(self.judged), len(masks), -1)
        if self.task is not None and self.task.kind != "classes":
            targets, task = self.labels.to(by_mask), self.task
            return torch.stack([task.rightness(each, targets).sum() for each in by_mask.unbind(dim=1)])
        found = by_mask.argmax(dim=2)
        return (found == self.labels[:, None]).sum(dim=0)

    def weights(self, masks: Tensor) -> Tensor:
        """Return the refitted weights (n_masks, n_units, n_classes), zero for units that are gone."""
        most = int(masks.sum(dim=1).max())
        order = masks.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
        there = masks.gather(1, order)
        pairs = there[:, :, None] & there[:, None]
        alone = torch.eye(most, dtype=self.spread.dtype)
        spread = torch.where(pairs, self.spread[order[:, :, None], order[:, None]], alone)
        cross = self.cross[order] * there[:, :, None]
        solved: Tensor = torch.linalg.solve_ex(spread, cross).result
        given: Tensor = solved.new_zeros(len(masks), masks.shape[1], cross.shape[2])
        return given.scatter_(1, order[:, :, None].expand_as(solved), solved * there[:, :, None])


class Refitted:
    """Several networks, each evaluated for masks over the units that its last layer reads."""

    def __init__(self, networks: Sequence[RefittedNetwork]) -> None:
        self.networks = list(networks)

    def accuracy(self, networks: Integers, masks: Bits) -> Floats:
        """Return the percentages (n,) of right answers of networks with ascending numbers (n,) and masks (n, bits)."""
        found = numpy.zeros(len(masks))
        with one_thread():
            for number, rows in pieces(networks):
                network, bits = self.networks[number], torch.from_numpy(masks[rows])
                for part in sorted_parts(bits):
                    found[rows.start + part.numpy()] = network.right(bits[part]) * (100 / len(network.labels))
        return found


def sorted_parts(bits: Tensor) -> list[Tensor]:
    """Put masks of like size together, so that small ones cost little, in parts that take little memory."""
    order = bits.sum(dim=1).argsort()
    return list(torch.split(order, max(1, min(32, MOST_VALUES // max(bits.shape[1] ** 2, 1)))))
