"""Public data sets, downloaded once into a cache; a file is there only when it is whole and its checksum is right."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from topiarist.data.catalogue import CATALOGUE, PublicDataSet, RemoteFile, find
from topiarist.data.limits import LARGEST_BYTES
from topiarist.errors import DataError
from topiarist.files import cannot_write

CHUNK_BYTES = 64 * 1024

Progress = Callable[[str, int, int | None], None]  # file name, bytes done, bytes in total where known


def cache_folder() -> Path:
    """Say where downloads go: TOPIARIST_CACHE, else XDG_CACHE_HOME/topiarist, else ~/.cache/topiarist."""
    if own := os.environ.get("TOPIARIST_CACHE"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "topiarist"
    return Path.home() / ".cache" / "topiarist"


def cached(name: str, *, catalogue: Mapping[str, PublicDataSet] = CATALOGUE, cache: Path | None = None) -> Path | None:
    """Give the data set's folder if all its files are there in full length; `fetch` also checks their contents."""
    data_set = find(name, catalogue)
    folder = _folder(name, cache)
    return folder if all(_has_length(folder / file.name, file) for file in data_set.files) else None


def fetch(
    name: str,
    *,
    catalogue: Mapping[str, PublicDataSet] = CATALOGUE,
    cache: Path | None = None,
    progress: Progress | None = None,
    timeout_seconds: float = 30.0,
) -> Path:
    """Download what is missing of a data set and give its folder; a download that broke off is taken up again."""
    data_set = find(name, catalogue)
    folder = _folder(name, cache)
    if missing := [file for file in data_set.files if not _is_right(folder / file.name, file)]:
        with _alone(folder):
            for file in missing:
                _obtain(file, folder / file.name, progress or _silent, timeout_seconds)
    return folder


def _folder(name: str, cache: Path | None) -> Path:
    return (cache_folder() if cache is None else cache) / name


def _silent(_name: str, _done: int, _total: int | None) -> None:
    pass


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make `folder` and hold its lock, so that a second process or thread waits and then finds the files there."""
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = lock.open("ab")
    except OSError as error:
        raise cannot_write(folder, error) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            raise cannot_write(lock, error) from error
        yield


def _obtain(file: RemoteFile, path: Path, progress: Progress, timeout_seconds: float) -> None:
    """Download one file to a part beside `path`, check it, and only then give it its name."""
    if _is_right(path, file):
        return
    part = path.with_name(f"{path.name}.part")
    try:
        _complete(part, file, progress, timeout_seconds)
        _check(part, file)
        part.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def _complete(part: Path, file: RemoteFile, progress: Progress, timeout_seconds: float) -> None:
    """Append to `part` the bytes that it lacks, or all of them where the server gives only the whole."""
    there = part.stat().st_size if part.exists() else 0
    if there == file.size_bytes:
        return
    with _ask(file.url, there, timeout_seconds) as response:
        done = there if response.status == HTTPStatus.PARTIAL_CONTENT else 0
        total = _total(file, done, response.length)
        limit = LARGEST_BYTES if total is None else total
        with part.open("ab") as stream:
            stream.truncate(done)
            progress(file.name, done, total)
            while chunk := _read(response, file.url, min(CHUNK_BYTES, limit - done)):
                stream.write(chunk)
                done += len(chunk)
                progress(file.name, done, total)
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and done < total:
        raise _broken(file.url, f"the connection broke off after {done} of {total} bytes")


def _ask(url: str, start: int, timeout_seconds: float) -> HTTPResponse:
    """Ask for the bytes from `start` on; where the server has no such bytes, for all of them."""
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response: HTTPResponse = urlopen(request, timeout=timeout_seconds)
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
                return _ask(url, 0, timeout_seconds)
            raise _broken(url, f"{error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise _broken(url, _reason(error)) from error
    given = response.headers.get("Content-Range", "")
    if start and response.status == HTTPStatus.PARTIAL_CONTENT and not given.startswith(f"bytes {start}-"):
        response.close()
        return _ask(url, 0, timeout_seconds)
    return response


def _total(file: RemoteFile, start: int, length: int | None) -> int | None:
    """Reconcile the length in the catalogue with what the server is about to send."""
    if length is None:
        return file.size_bytes
    if file.size_bytes is not None and start + length != file.size_bytes:
        raise DataError(f"{file.url}: expected {file.size_bytes} bytes, the server offers {start + length}")
    return start + length


def _read(response: HTTPResponse, url: str, most_bytes: int) -> bytes:
    try:
        return response.read(most_bytes)
    except (OSError, HTTPException) as error:
        raise _broken(url, _reason(error)) from error


def _broken(url: str, reason: str) -> DataError:
    return DataError(f"cannot download {url}: {reason}; run the same command again to go on from where it stopped")


def _reason(error: OSError | HTTPException) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__


def _check(part: Path, file: RemoteFile) -> None:
    found = _checksum(part, file)
    if found != file.checksum:
        part.unlink()
        raise DataError(
            f"{file.url}: expected {file.checksum}, found {found}; removed it, run the same command again to start over"
        )


def _is_right(path: Path, file: RemoteFile) -> bool:
    return _has_length(path, file) and _checksum(path, file) == file.checksum


def _has_length(path: Path, file: RemoteFile) -> bool:
    return path.is_file() and file.size_bytes in (None, path.stat().st_size)


def _checksum(path: Path, file: RemoteFile) -> str:
    """Compute the checksum of `path` in the kind and form of the one that is expected."""
    kind = file.checksum.partition(":")[0]
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{digest.hexdigest()}"
