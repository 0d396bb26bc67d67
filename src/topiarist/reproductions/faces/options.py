"""What can be done with images of faces before they are described; the command line derives its options from it."""

from typing import Literal

from pydantic import Field

from topiarist.settings import Settings

Missing = Literal["whole", "skip"]


class FaceImageOptions(Settings):
    """What is done with images before they are described."""

    align: bool = Field(default=False, description="Level images by the eyes before the crop.")
    copies: int = Field(default=0, ge=0, description="Changed copies of each image, for training.")
    missing: Missing = Field(
        default="whole", description="Where no face is found: take the whole image, or leave it out (skip)."
    )
