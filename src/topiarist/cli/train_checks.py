"""What `topiarist train` refuses before it reads any data: options without effect, places that cannot be written."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from topiarist.cli import train_options as option
from topiarist.cli.options import given_options


def check_out(out: Path | None) -> None:
    """Refuse a place where the network could not be written, before hours of training."""
    from topiarist.errors import SettingsError
    from topiarist.files import check_place

    if out is None:
        return
    if out.suffix != ".safetensors":
        raise SettingsError(f"--out must end in .safetensors; found '{out}'")
    check_place(out)


def check_family(context: typer.Context, family: tuple[str, tuple[int, ...]] | None) -> None:
    """Refuse options of fully connected layers for a convolutional network."""
    from topiarist.errors import SettingsError

    given = [name for name in ("hidden", *option.OF_HIDDEN_LAYERS) if name in given_options(context)]
    if family is not None and given:
        raise SettingsError(f"--{given[0].replace('_', '-')} has no effect on a network that --{family[0]} builds")


def check_layers(context: typer.Context, network: Mapping[str, Any]) -> None:
    """Refuse settings of batch norm or leaky ReLU that the network has no place for, or that none can have."""
    from topiarist.errors import SettingsError
    from topiarist.models.settings import ModelSettings

    given = given_options(context)
    norms = [name for name in option.OF_BATCH_NORM if name in given]
    if norms and not network["batch_norm"]:
        raise SettingsError(f"--{norms[0].replace('_', '-')} has no effect without --batch-norm")
    if "leaky_slope" in given and network["activation"] != "leaky_relu":
        raise SettingsError("--leaky-slope has no effect without --activation leaky_relu")
    with option.named():
        ModelSettings.model_validate(network)


def check_transfer(context: typer.Context, base: Path | None) -> None:
    """Refuse options that would have no effect."""
    from topiarist.errors import SettingsError

    given = given_options(context)
    if base is None:
        for name in ("drop_top", "into"):
            if name in given:
                raise SettingsError(
                    f"--{name.replace('_', '-')} belongs to transfer: name the trained network with --base"
                )
        return
    for name in given:
        if name in option.OF_A_FRESH_NETWORK:
            raise SettingsError(
                f"--{name.replace('_', '-')} has no effect with --base: the network is built as its base"
            )
    for name in ("epochs", "steps", "until_epoch"):
        if name in given:
            option_name = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{option_name} has no effect with --base: give the epochs of each phase with --phase")
