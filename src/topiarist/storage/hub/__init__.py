"""Networks from a Hugging Face folder: `config.json` and weights as `.safetensors`, without any code of the folder."""

from topiarist.storage.hub.examples import hub_example, is_of_hub
from topiarist.storage.hub.folder import load_folder

__all__ = ["hub_example", "is_of_hub", "load_folder"]
