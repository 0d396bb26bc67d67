"""Looks at what a layer takes and gives while a network runs, and stops the network as soon as it is seen."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.evaluation import evaluating
from topiarist.surgery.calibration import Batches

Seen = tuple[Tensor, Tensor]


class EnoughError(Exception):
    """The layer was seen; the rest of the network need not run."""


def watch(model: nn.Module, path: str, calls: int, batches: Batches) -> Iterator[list[Seen]]:
    """Give, batch by batch, what a layer took and gave at each of its calls."""
    module = model.get_submodule(path)
    seen: list[Seen] = []

    def remember(_: nn.Module, taken: tuple[Any, ...], given: Tensor) -> None:
        seen.append((taken[0].detach().clone(), given.detach().clone()))  # what comes next may write into them
        if len(seen) == calls:
            raise EnoughError

    for args, kwargs in batches:
        seen.clear()
        handle = module.register_forward_hook(remember)
        try:
            with evaluating(model):
                model(*args, **kwargs)
        except EnoughError:
            pass
        except (RuntimeError, ValueError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise ModelError(f"the network cannot read the calibration data: {reason}") from error
        finally:
            handle.remove()
        yield list(seen)
