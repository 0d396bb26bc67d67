"""The verbs that change depth; see `topiarist.surgery.width.verbs`."""

from collections.abc import Sequence

from torch import nn

from topiarist.surgery.applying import apply
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.depth.blocks import Blocks, blocks, removable_block
from topiarist.surgery.edits.kinds import DeepenNetwork, FactoriseLayer, FoldLayer, RemoveBlock
from topiarist.surgery.edits.plan import Plan
from topiarist.tracing import Anatomy, ExampleInput


def deepen(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    after: str,
    batch_norm: bool = False,
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Insert an identity layer after a layer; the network computes the same.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    after, batch_norm : str, bool
        The layer, and whether a batch norm follows the new one.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        The layer does not run as one, or its units do not lie along an axis of a linear layer or a convolution.

    Examples
    --------
    >>> len(deepen(model, x, after="1"))
    5
    """
    edit = DeepenNetwork(after=after, batch_norm=batch_norm)
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def fold(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    layer: str,
    linearise: bool = False,
    calibration: Calibration | None = None,
    anatomy: Anatomy | None = None,
    settling: int | None = None,
) -> nn.Module:
    """Multiply a layer into the next, or a batch norm into the layer before it.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    layer, linearise : str, bool
        The layer that goes, and whether an activation between the two is dropped, without which folding is exact.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples on which the layer that took the other in is refitted to make up for that, and the network is settled.
    settling : int, optional
        As for `remove`.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        Something lies between the two layers, or others read what the layer returns.

    Examples
    --------
    >>> fold(model, x, layer="0", linearise=True, calibration=torch.randn(64, 8))
    Sequential(
      (2): Linear(in_features=8, out_features=4, bias=True)
    )
    """
    edit = FoldLayer(layer=layer, linearise=linearise, refit=calibration is not None)
    return apply(Plan((edit,)), model, example_input, calibration=calibration, anatomy=anatomy, settling=settling)


def factorise(model: nn.Module, *, layer: str, rank: int) -> nn.Module:
    """Replace a linear layer or a convolution by two thinner ones, with the nearest product of that rank.

    Parameters
    ----------
    model, layer, rank : nn.Module, str, int
        The network, the layer, and the number of units between the two.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        The layer is of another kind, grouped, shared, or of a lower rank.

    Examples
    --------
    >>> factorise(model, layer="0", rank=3)[0].narrow
    Linear(in_features=8, out_features=3, bias=False)
    """
    return apply(Plan((FactoriseLayer(layer=layer, rank=rank),)), model)


def remove_block(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    block: str | Sequence[str],
    calibration: Calibration | None = None,
    anatomy: Anatomy | None = None,
    proof: bool = True,
    settling: int | None = None,
) -> nn.Module:
    """Remove residual blocks: in the place of each stands a module that passes its input on.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    block : str or sequence of str
        The blocks, by their names in `blocks(model, example_input)`.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples on which the layers that read what changed are refitted, and the network is settled.
    proof : bool
        Prove first that without the blocks the network's own code computes what it does with their inputs passed on.
    settling : int, optional
        As for `remove`.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        There is no such block, or it cannot be removed.

    Examples
    --------
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, norm_first=True)
    >>> encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    >>> remove_block(encoder, torch.zeros(3, 1, 8), block="layers.1").layers[1]
    PassedBlock(passes 'src' on)
    """
    edit = removal_of_blocks(blocks(model, example_input), block, refit=calibration is not None)
    return apply(
        Plan((edit,)),
        model,
        example_input,
        calibration=calibration,
        anatomy=anatomy,
        proof=proof,
        settling=settling,
    )


def removal_of_blocks(known: Blocks, names: str | Sequence[str], *, refit: bool) -> RemoveBlock:
    """Return the edit that removes blocks, or raise an error that says why it cannot."""
    several = (names,) if isinstance(names, str) else tuple(names)
    return RemoveBlock(blocks={name: removable_block(known, name).passage for name in several}, refit=refit)
