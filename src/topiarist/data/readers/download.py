"""Public data sets, downloaded once into a cache; a file is there only when it is whole and its checksum is right."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pooch
import requests
from filelock import FileLock

from topiarist.data.limits import LARGEST_BYTES
from topiarist.data.readers.catalogue import CATALOGUE, PublicDataSet, RemoteFile, cache_folder, find_data_set
from topiarist.errors import DataError
from topiarist.files import cannot_write

Progress = Callable[[str, int, int | None], None]  # file name, bytes done, bytes in total where known

_CHUNK_BYTES = 64 * 1024


def fetch(
    name: str,
    *,
    catalogue: Mapping[str, PublicDataSet] = CATALOGUE,
    cache: Path | None = None,
    progress: Progress | None = None,
    timeout_seconds: float = 30.0,
) -> Path:
    """Download what is missing or wrong of a data set, and return its folder."""
    folder = (cache or cache_folder()) / name
    wanted = [file for file in find_data_set(name, catalogue).files if not _is_right(folder / file.name, file)]
    if not wanted:
        return folder
    with _alone(folder) as incoming:
        for file in wanted:
            if not _is_right(folder / file.name, file):  # another process may have been faster
                _download(file, folder, incoming, _Received(file, progress), timeout_seconds)
    return folder


def _is_right(path: Path, file: RemoteFile) -> bool:
    kind, _, digest = file.checksum.partition(":")
    return path.is_file() and bool(pooch.file_hash(str(path), alg=kind) == digest)


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """Hold the lock of a folder, so that a second process waits; yield an empty folder inside that goes afterwards.

    A process that was killed may have left a half download there: it never becomes a file of the data set.
    """
    incoming = folder / ".incoming"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            try:
                shutil.rmtree(incoming, ignore_errors=True)
                yield incoming
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


class _Received:
    """The bytes of a file that have come so far, counted and limited; pooch takes it for a progress bar."""

    def __init__(self, file: RemoteFile, report: Progress | None) -> None:
        self.file, self.report = file, report
        self.path, self.done = Path(), 0
        self.most: int | None = None

    @property
    def total(self) -> int | None:
        return self.most

    @total.setter
    def total(self, offered: int) -> None:
        """Take the length that the server offers, 0 where it does not say."""
        expected = self.file.size_bytes
        if offered and expected not in (None, offered):
            raise DataError(f"{self.file.url}: expected {expected} bytes, the server offers {offered}")
        self.most = offered or expected
        self.update(0)

    def update(self, _chunk: int) -> None:
        self.done = self.path.stat().st_size
        limit = self.most or LARGEST_BYTES
        if self.done > limit:
            raise DataError(f"{self.file.url}: expected at most {limit} bytes, the server sends more")
        if self.report is not None:
            self.report(self.file.name, self.done, self.most)

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def _download(file: RemoteFile, folder: Path, incoming: Path, received: _Received, timeout_seconds: float) -> None:
    """Download one file into `incoming`, check it, and only then move it to its place."""
    plain = {"Accept-Encoding": "identity"}  # a server that packs the file again would change its length
    get = pooch.HTTPDownloader(progressbar=received, chunk_size=_CHUNK_BYTES, timeout=timeout_seconds, headers=plain)

    def download(url: str, output_file: str, _pooch: object) -> None:
        received.path = Path(output_file)
        get(url, output_file, None)

    pooch.get_logger().setLevel("WARNING")  # it would print a line per file
    try:
        found = pooch.retrieve(file.url, file.checksum, file.name, incoming, downloader=download)
    except requests.RequestException as error:
        raise DataError(
            f"cannot download {file.url}: {_reason(error, received)}; check the network and run the same command again"
        ) from error
    except ValueError as error:  # it names the checksum expected and the one found
        raise DataError(f"cannot download {file.url}: {error}") from error
    Path(found).replace(folder / file.name)


def _reason(error: requests.RequestException, received: _Received) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    after = f" after {received.done} of {received.most or 'unknown'} bytes" if received.done else ""
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return f"the connection timed out{after}"
    return f"the connection broke off{after}" if after else "there is no connection to the server"
