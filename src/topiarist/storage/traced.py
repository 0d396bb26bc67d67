"""A network as `torch.export` traces it: any number of samples, without a word on the way."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from topiarist.errors import ModelError, TopiaristError
from topiarist.storage.input_form import Inputs


def trace(module: nn.Module, like: Inputs) -> ExportedProgram:
    """Trace a network on zeros of the shape and type of samples; the batch may have any size."""
    example = torch.from_numpy(like[:1]).new_zeros((2, *like.shape[1:]))
    asked = "whose forward must not depend on values nor on how many samples there are"
    with quietly(f"torch.export cannot follow the network, {asked}"):
        return torch.export.export(module, (example,), dynamic_shapes=({0: Dim.DYNAMIC},))


@contextmanager
def quietly(what: str) -> Iterator[None]:
    """Keep tools of others silent, and turn whatever goes wrong in them into one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward, an exporter or a runtime raises
        raise ModelError(f"{what}: {reason_of(error)}") from error
    finally:
        logging.disable(before)


def reason_of(error: BaseException) -> str:
    """Give the last sentence of the first cause: exporters wrap it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].endswith(":"):
        lines = lines[1:]
    return lines[0] if lines else type(error).__name__
