"""What a run of the scenes can change: how much is run, the schedule of pruning, block mixing, the ensemble.

The defaults are those of Ooi, Peksi and Gan (2020). The command line derives its options from these settings; importing
them does not import torch.
"""

from typing import Literal

from pydantic import Field

from topiarist.settings import Settings
from topiarist.training.pruning import Pruning


class ScenesPruning(Pruning):
    """When how much is pruned; what is not given follows from the length of the training."""

    initial_sparsity: float = Field(default=0.1, ge=0, lt=1, description="s_i: zeros after the first pruning.")
    sparsity: float = Field(default=0.8, ge=0, lt=1, description="s_f: zeros at the end.")
    begin: int | None = Field(
        default=None,
        ge=0,
        description="t₀: epochs before the first pruning; by default a quarter of all, a tenth with --quick.",
    )
    every: int | None = Field(
        default=None,
        ge=1,
        description="Δt: epochs from one pruning to the next; by default a fortieth of all, 1 with --quick.",
    )
    times: int | None = Field(
        default=None,
        ge=0,
        description="n: prunings after the first; by default up to three quarters of the epochs, half with --quick.",
    )


class ScenesMixing(Settings):
    """How the mixtures of Model 4 are made (section 2.2)."""

    pieces: int = Field(default=10, ge=1, description="Pieces of a mixture, of Model 4.")
    within: Literal["coarse", "fine"] = Field(default="coarse", description="Mix within this class, of Model 4.")
    on: Literal["waveform", "spectrogram"] = Field(
        default="waveform", description="Join pieces of sound, as published, or of spectrograms."
    )


class ScenesOptions(Settings):
    """What can be changed."""

    runs: int = Field(default=10, ge=1, description="Ensembles to train.")
    epochs: int = Field(default=400, ge=1, description="Epochs of every training.")
    folds: int | None = Field(
        default=None,
        ge=2,
        description="Cross-validate, whole cities together; only the training part, where there is a test part.",
    )
    prune: ScenesPruning = ScenesPruning()
    mixing: ScenesMixing = ScenesMixing()
    vgg_members: int = Field(default=5, ge=0, description="V(2,2,3,3) of an ensemble.")  # section 3.2
    inception_members: int = Field(default=1, ge=0, description="I(2,1,2) of an ensemble.")
    inception_norms: bool = Field(
        default=False,
        description="Batch norm in the blocks of I, which the paper leaves out: pruned in few steps, it then loses"
        " little.",
    )
