"""The public data sets that can be had by name, with where their files are and how to know that they are right."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from topiarist.errors import DataError


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file to download; `checksum` is "md5:…" or "sha256:…", `size_bytes` is None where it is not known."""

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
    input_shape: tuple[int, ...]
    train_samples: int
    test_samples: int
    licence: str
    source: str
    files: tuple[RemoteFile, ...]

    @property
    def size_bytes(self) -> int | None:
        """The length of all files together, None where that of any is not known."""
        sizes = [file.size_bytes for file in self.files if file.size_bytes is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None


def find(name: str, catalogue: Mapping[str, PublicDataSet]) -> PublicDataSet:
    """Look a data set up by name."""
    if name not in catalogue:
        raise DataError(f"no data set '{name}' to download; there are {', '.join(sorted(catalogue))}")
    return catalogue[name]


def _files(base_url: str, *rows: tuple[str, int, str]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(url=f"{base_url}/{name}", name=name, size_bytes=size_bytes, checksum=checksum)
        for name, size_bytes, checksum in rows
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DIGITS = tuple("0123456789")
FASHION = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
CIFAR10 = _words("airplane automobile bird cat deer dog frog horse ship truck")
CIFAR100 = _words("""
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
""")

_DATA_SETS = (
    PublicDataSet(
        name="fashion-mnist",
        description="pictures of clothing, 28 by 28, grey",
        classes=FASHION,
        input_shape=(1, 28, 28),
        train_samples=60_000,
        test_samples=10_000,
        licence="MIT",
        source="https://github.com/zalandoresearch/fashion-mnist",
        files=_files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            ("train-images-idx3-ubyte.gz", 26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            ("train-labels-idx1-ubyte.gz", 29_515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
            ("t10k-images-idx3-ubyte.gz", 4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", 5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
        ),
    ),
    PublicDataSet(
        name="mnist",
        description="handwritten digits, 28 by 28, grey",
        classes=DIGITS,
        input_shape=(1, 28, 28),
        train_samples=60_000,
        test_samples=10_000,
        licence="CC BY-SA 3.0",
        source="http://yann.lecun.com/exdb/mnist",
        files=_files(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            ("train-images-idx3-ubyte.gz", 9_912_422, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            ("train-labels-idx1-ubyte.gz", 28_881, "md5:d53e105ee54ea40749a09fcbcd1e9432"),
            ("t10k-images-idx3-ubyte.gz", 1_648_877, "md5:9fb629c4189551a2d022fa330f9573f3"),
            ("t10k-labels-idx1-ubyte.gz", 4_542, "md5:ec29112dd5afa0611ce80d1b7f02629c"),
        ),
    ),
    PublicDataSet(
        name="cifar10",
        description="small photographs of animals and vehicles, 32 by 32, colour",
        classes=CIFAR10,
        input_shape=(3, 32, 32),
        train_samples=50_000,
        test_samples=10_000,
        licence="none stated; the authors ask to be cited",
        source="https://www.cs.toronto.edu/~kriz/cifar.html",
        files=_files(
            "https://www.cs.toronto.edu/~kriz",
            ("cifar-10-binary.tar.gz", 170_052_171, "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        ),
    ),
    PublicDataSet(
        name="cifar100",
        description="small photographs of a hundred kinds of thing, 32 by 32, colour",
        classes=CIFAR100,
        input_shape=(3, 32, 32),
        train_samples=50_000,
        test_samples=10_000,
        licence="none stated; the authors ask to be cited",
        source="https://www.cs.toronto.edu/~kriz/cifar.html",
        files=_files(
            "https://www.cs.toronto.edu/~kriz",
            ("cifar-100-binary.tar.gz", 168_513_733, "md5:03b5dce01913d631647c71ecec9e9cb8"),
        ),
    ),
    PublicDataSet(
        name="svhn",
        description="house numbers in street photographs, one digit each, 32 by 32, colour",
        classes=DIGITS,
        input_shape=(3, 32, 32),
        train_samples=73_257,
        test_samples=26_032,
        licence="for non-commercial use only",
        source="http://ufldl.stanford.edu/housenumbers",
        files=_files(
            "http://ufldl.stanford.edu/housenumbers",
            ("train_32x32.mat", 182_040_794, "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test_32x32.mat", 64_275_384, "md5:eb5a983be6a315427106f1b164d9cef3"),
        ),
    ),
)

CATALOGUE: Mapping[str, PublicDataSet] = MappingProxyType({one.name: one for one in _DATA_SETS})
