"""Hugging Face folders: small networks with random weights, in one file or in shards with an index."""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.fuzzing.folders import packed_folder, unpacked
from tests.storage.hub_networks import make_network, write_folder
from topiarist.storage.hub import hub_example, load_folder
from topiarist.tracing import anatomy

SHARD = "4KB"  # at most: several files


def hub_folders() -> dict[str, bytes]:
    """Return folders as files, by name."""
    return {
        "bert.folder": _written("bert"),
        "shards.folder": _written("bert", max_shard_size=SHARD),
        "vit.folder": _written("vit"),
    }


def read_hub(file: Path) -> None:
    """Load a network and trace it on its example input, as `topiarist anatomy` does."""
    with unpacked(file) as folder:
        network = load_folder(folder)
        anatomy(network, hub_example(network))


def _written(name: str, **how: str) -> bytes:
    import transformers  # only here: it takes seconds

    with TemporaryDirectory() as folder:
        return packed_folder(write_folder(make_network(transformers, name), Path(folder) / name, **how))
