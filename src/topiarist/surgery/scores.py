"""The scores of the Surgeon's recommendation module: what singular values of the weights say for each hidden layer.

Neural network surgery, section 3.2. Singular values that a layer with more units than inputs does not have count as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, fx, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery.spectra import ABSOLUTE_FLOOR, RELATIVE_FLOOR, Spectrum, count_negligible, weight_spectrum
from topiarist.tracing import Anatomy


@dataclass(frozen=True)
class Scores:
    """What the paper thinks of the edits of one hidden layer, each from 0 to 1.

    `negligible` of its `units` (n_r of n_l) could go by the singular values.
    """

    units: int
    negligible: int
    add_neurons: float
    add_layer: float
    remove_neurons: float
    remove_layer: float

    @property
    def truncate(self) -> float:
        """Return the score of a truncated SVD, n_r/n_l: the published code has it, the text has none."""
        return self.remove_neurons


def paper_scores(
    matrices: Sequence[Tensor], *, relative: float = RELATIVE_FLOOR, absolute: float = ABSOLUTE_FLOOR
) -> tuple[Scores, ...]:
    """Score the hidden layers of a network, given by their weights (n_units, …) in the order in which they run.

    Add neurons 1 − n_r/n_l, add layer (1 − n_r/n_l) · i/h, remove neurons n_r/n_l, remove layer (n_r/n_l) · i/h, or 1
    where n_r = n_l; i counts the h hidden layers from 1.
    """
    spectra = [weight_spectrum(matrix) for matrix in matrices]
    return score_spectra(spectra, [len(matrix) for matrix in matrices], relative=relative, absolute=absolute)


def score_spectra(
    spectra: Sequence[Spectrum],
    units: Sequence[int],
    *,
    relative: float = RELATIVE_FLOOR,
    absolute: float = ABSOLUTE_FLOOR,
) -> tuple[Scores, ...]:
    """Score hidden layers whose spectra are known; see `paper_scores`."""
    scores = []
    for number, (spectrum, count) in enumerate(zip(spectra, units, strict=True), 1):
        negligible = count_negligible(spectrum.singular_values, count, relative=relative, absolute=absolute)
        share, depth = negligible / count, number / len(spectra)
        remove_layer = 1.0 if negligible == count else share * depth
        scores.append(Scores(count, negligible, 1 - share, (1 - share) * depth, share, remove_layer))
    return tuple(scores)


def weighted_layers(model: nn.Module, found: Anatomy) -> tuple[str, ...]:
    """Name the linear layers and convolutions in the order in which they run."""
    return tuple(name for name in found.calls if isinstance(model.get_submodule(name), (nn.Linear, _ConvNd)))


def hidden_layers(model: nn.Module, found: Anatomy) -> tuple[str, ...]:
    """Name the linear layers and convolutions behind which another comes: all but those that give the output."""
    weighted = weighted_layers(model, found)
    last = last_layers(found, frozenset(weighted))
    return tuple(name for name in weighted if name not in last)


def last_layers(found: Anatomy, weighted: frozenset[str]) -> set[str]:
    """Name the layers from which the network's output comes without another in between."""
    graph: fx.Graph | None = next((seen.node.graph for seen in found.calls.values()), None)
    waiting = [node for node in graph.nodes if node.op == "output"] if graph is not None else []
    known: set[fx.Node] = set()
    last: set[str] = set()
    while waiting:
        for node in waiting.pop().all_input_nodes:
            if node.op == "call_module" and node.target in weighted:
                last.add(str(node.target))
            elif node not in known:
                known.add(node)
                waiting.append(node)
    return last
