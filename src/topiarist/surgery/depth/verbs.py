"""The verbs that change depth; see `topiarist.surgery.width.verbs`."""

from torch import nn

from topiarist.surgery.applying import apply
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.edits.kinds import DeepenNetwork, FactoriseLayer, FoldLayer
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
