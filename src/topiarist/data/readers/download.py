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
    if wanted:
        with _alone(folder) as incoming:
            for file in wanted:
                if not _is_right(folder / file.name, file):  # another process may have been faster
                    _download(file, incoming, progress or (lambda *_: None), timeout_seconds)
                    (incoming / file.name).replace(folder / file.name)
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


def _download(file: RemoteFile, incoming: Path, progress: Progress, timeout_seconds: float) -> None:
    done = 0

    def download(url: str, output_file: str, _pooch: object) -> None:
        nonlocal done
        plain = {"Accept-Encoding": "identity"}  # a server that packs the file again would change its length
        with (
            requests.get(url, stream=True, timeout=timeout_seconds, headers=plain) as response,
            Path(output_file).open("wb") as stream,
        ):
            response.raise_for_status()
            total = _total(file, int(response.headers.get("Content-Length", 0)))
            progress(file.name, 0, total)
            for chunk in response.iter_content(_CHUNK_BYTES):
                done += len(chunk)
                if done > (total or LARGEST_BYTES):
                    raise DataError(f"{url}: expected at most {total or LARGEST_BYTES} bytes, the server sends more")
                stream.write(chunk)
                progress(file.name, done, total)

    pooch.get_logger().setLevel("WARNING")  # it would print a line per file
    try:
        pooch.retrieve(file.url, file.checksum, file.name, incoming, downloader=download)
    except requests.RequestException as error:
        again = "check the network and run the same command again"
        raise DataError(f"cannot download {file.url}: {_reason(error, done)}; {again}") from error
    except ValueError as error:  # it names the checksum expected and the one found
        raise DataError(f"cannot download {file.url}: {error}") from error


def _total(file: RemoteFile, offered: int) -> int | None:
    """Return the length to expect; `offered` by the server, it is 0 where that is not said."""
    if offered and file.size_bytes not in (None, offered):
        raise DataError(f"{file.url}: expected {file.size_bytes} bytes, the server offers {offered}")
    return offered or file.size_bytes


def _reason(error: requests.RequestException, done: int) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return f"the connection timed out after {done} bytes"
    return f"the connection broke off after {done} bytes" if done else "there is no connection to the server"
