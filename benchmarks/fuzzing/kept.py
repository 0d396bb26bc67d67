"""What the library keeps for itself and reads again: folders of studies, tables of latency, clips and mixtures."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from benchmarks.fuzzing.folders import packed_folder, unpacked
from topiarist import load
from topiarist.data.block_mixing import open_mixtures, write_mixtures
from topiarist.features.log_mel import LogMel
from topiarist.features.sound_cache import SoundCache
from topiarist.files import write_atomically
from topiarist.measurement.tables.layer_times import FORMAT, LayerTimes, TableFile
from topiarist.measurement.tables.torch_layers import TorchLayers
from topiarist.study.results import Results
from topiarist.study.study import Study

CLIP = "0" * 64  # the digest of a sound
BANDS, RATE, LENGTH = 8, 8000, 4096
SECONDS = {"linear": {"64,128": 1e-5, "64,64": 1e-5}}


def study_folder() -> bytes:
    """Return the folder of a study that kept its networks, as a file."""
    with TemporaryDirectory() as place:
        Study(data="iris", training={"epochs": 1}, models=True).run(Path(place) / "study")
        return packed_folder(Path(place) / "study")


def read_study_folder(file: Path) -> None:
    """Read results, histories and networks of a study."""
    with unpacked(file) as folder:
        results = Results.read(folder)
        for row in results.rows:
            if row["state"] == "done":
                results.history(row)
                load(results.model_path(row))


def caches() -> dict[str, bytes]:
    """Return files that are found in the cache, by name."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        sounds = _sounds(folder / "sounds")
        sounds.keep(CLIP, numpy.zeros(sounds.shape, numpy.float32))
        sounds.flush()
        described, samples = numpy.zeros((4, 1, 2, 3), numpy.float32), numpy.zeros((4, 2), int)
        write_mixtures(folder / "mixtures.safetensors", described, samples)
        times = TableFile(format=FORMAT, machine={}, seconds=SECONDS).model_dump_json()
        write_atomically(folder / "latency.json", times.encode())
        return {
            "sounds.folder": packed_folder(folder / "sounds"),
            "mixtures.safetensors": (folder / "mixtures.safetensors").read_bytes(),
            "latency.json": (folder / "latency.json").read_bytes(),
        }


def read_cache(file: Path) -> None:
    """Read a file of the cache: what is damaged is as if it were not there, and found or measured again."""
    if file.suffix == ".json":
        LayerTimes(TorchLayers(1), file)
    elif file.name.endswith("mixtures.safetensors"):
        open_mixtures(file)
    else:
        with unpacked(file) as folder:
            _sounds(folder).find(CLIP)


def _sounds(folder: Path) -> SoundCache:
    return SoundCache(folder, LogMel(bands=BANDS), rate=RATE, length=LENGTH)
