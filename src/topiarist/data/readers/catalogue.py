"""The public data sets that can be downloaded by name: where their files are, and where they go.

The SHA-256 values are those of TensorFlow Datasets (`url_checksums/*.txt`), for files of the same names and lengths.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from topiarist.errors import DataError


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file to download; `checksum` is "sha256:…" or "md5:…", `size_bytes` is None where it is not known."""

    url: str
    name: str
    checksum: str
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class PublicDataSet:
    """A data set that others publish; its classes are in the order of their numbers in the files."""

    name: str
    description: str
    classes: tuple[str, ...]
    samples: int
    licence: str
    source: str
    files: tuple[RemoteFile, ...]

    @property
    def size_bytes(self) -> int | None:
        """The length of all files together, None where that of one is not known."""
        sizes = [file.size_bytes for file in self.files if file.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _files(base_url: str, table: str) -> tuple[RemoteFile, ...]:
    """Return the files of a table of names, lengths and SHA-256 values, one file per line."""
    rows = [line.split() for line in table.splitlines() if line.strip()]
    return tuple(
        RemoteFile(url=f"{base_url}/{name}", name=name, size_bytes=int(size), checksum=f"sha256:{sha256}")
        for name, size, sha256 in rows
    )


_DIGITS = tuple("0123456789")
_CIFAR = {
    "licence": "none stated; the authors ask to be cited",
    "source": "https://www.cs.toronto.edu/~kriz/cifar.html",
}
_DATA_SETS = (
    PublicDataSet(
        name="fashion-mnist",
        description="images of clothing, 28 by 28, grey",
        classes=(*_words("T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag"), "Ankle boot"),
        samples=70_000,
        licence="MIT",
        source="https://github.com/zalandoresearch/fashion-mnist",
        files=_files(
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            """
            train-images-idx3-ubyte.gz 26421880 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
            train-labels-idx1-ubyte.gz 29515 a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
            t10k-images-idx3-ubyte.gz 4422102 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
            t10k-labels-idx1-ubyte.gz 5148 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
            """,
        ),
    ),
    PublicDataSet(
        name="mnist",
        description="handwritten digits, 28 by 28, grey",
        classes=_DIGITS,
        samples=70_000,
        licence="CC BY-SA 3.0",
        source="http://yann.lecun.com/exdb/mnist",
        files=_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            """
            train-images-idx3-ubyte.gz 9912422 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
            train-labels-idx1-ubyte.gz 28881 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
            t10k-images-idx3-ubyte.gz 1648877 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
            t10k-labels-idx1-ubyte.gz 4542 f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
            """,
        ),
    ),
    PublicDataSet(
        name="cifar10",
        description="small photographs of animals and vehicles, 32 by 32, colour",
        classes=_words("airplane automobile bird cat deer dog frog horse ship truck"),
        samples=60_000,
        **_CIFAR,
        files=_files(
            "https://www.cs.toronto.edu/~kriz",
            "cifar-10-binary.tar.gz 170052171 c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    PublicDataSet(
        name="cifar100",
        description="small photographs of a hundred kinds of thing, 32 by 32, colour",
        classes=_words("""
            apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
            castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
            elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
            lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
            pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
            shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
            television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
        """),
        samples=60_000,
        **_CIFAR,
        files=_files(
            "https://www.cs.toronto.edu/~kriz",
            "cifar-100-binary.tar.gz 168513733 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
    PublicDataSet(
        name="svhn",
        description="house numbers in street photographs, one digit each, 32 by 32, colour",
        classes=_DIGITS,
        samples=99_289,
        licence="for non-commercial use only",
        source="http://ufldl.stanford.edu/housenumbers",
        files=_files(
            "http://ufldl.stanford.edu/housenumbers",  # published over http: the checksum protects
            """
            train_32x32.mat 182040794 435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8
            test_32x32.mat 64275384 cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b
            """,
        ),
    ),
)

CATALOGUE: Mapping[str, PublicDataSet] = MappingProxyType({one.name: one for one in _DATA_SETS})


def find_data_set(name: str, catalogue: Mapping[str, PublicDataSet]) -> PublicDataSet:
    """Return the data set of a name."""
    if name not in catalogue:
        raise DataError(f"no data set '{name}' to download; there are {', '.join(sorted(catalogue))}")
    return catalogue[name]


def cache_folder() -> Path:
    """Return where downloads go: TOPIARIST_CACHE, else XDG_CACHE_HOME/topiarist, else ~/.cache/topiarist."""
    if own := os.environ.get("TOPIARIST_CACHE"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "topiarist"
    return Path.home() / ".cache" / "topiarist"


def cached(name: str, *, catalogue: Mapping[str, PublicDataSet] = CATALOGUE, cache: Path | None = None) -> Path | None:
    """Return the data set's folder if all its files are there in full length; `fetch` also checks their contents."""
    folder = (cache or cache_folder()) / name
    paths = {folder / file.name: file for file in find_data_set(name, catalogue).files}
    whole = all(path.is_file() and file.size_bytes in (None, path.stat().st_size) for path, file in paths.items())
    return folder if whole else None
