"""Downloads against a real HTTP server that this file starts: whole, and everything that goes wrong."""

import hashlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from topiarist.data.readers.catalogue import CATALOGUE, PublicDataSet, RemoteFile, cache_folder, cached
from topiarist.data.readers.download import fetch
from topiarist.errors import DataError, TopiaristError

CONTENT = bytes(i * i % 251 for i in range(300_000))
HALF = 150_000


class Server(ThreadingHTTPServer):
    """Serves CONTENT under every path, in whatever way a test asks for, and counts what was asked of it."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.status: int | None = None
        self.gives_length = True
        self.breaks_off_after: int | None = None
        self.stalls_after: int | None = None
        self.go_on = threading.Event()
        self.half_sent = threading.Event()
        self.requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.status is not None:
            self.send_error(self.server.status)
            return
        self.send_response(200)
        if self.server.gives_length:
            self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.send(self.server.content)

    def send(self, body: bytes) -> None:
        pause = self.server.breaks_off_after or self.server.stalls_after or len(body)
        with suppress(ConnectionError):  # where the client gives up, as it is meant to
            self.wfile.write(body[:pause])
            self.server.half_sent.set()
            if self.server.breaks_off_after is not None:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if self.server.stalls_after is not None:
                self.server.go_on.wait(timeout=20)
            self.wfile.write(body[pause:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as started:
        thread = threading.Thread(target=started.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield started
        started.go_on.set()
        started.shutdown()
        thread.join()


def catalogue_of(
    url: str, *, checksum: str | None = None, size_bytes: int | None = len(CONTENT)
) -> dict[str, PublicDataSet]:
    right = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    file = RemoteFile(url=f"{url}/a.bin", name="a.bin", checksum=checksum or right, size_bytes=size_bytes)
    data_set = PublicDataSet(
        name="tiny",
        description="a file to download",
        classes=("no", "yes"),
        samples=2,
        licence="none",
        source=url,
        files=(file,),
    )
    return {"tiny": data_set}


def file_of(cache: Path) -> Path:
    return cache / "tiny" / "a.bin"


def assert_nothing_left(cache: Path) -> None:
    """See that a download that went wrong leaves no file but the empty lock."""
    left = [path for path in cache.rglob("*") if path.is_file()]
    assert all(path.name == ".tiny.lock" and not path.stat().st_size for path in left)


def assert_whole(cache: Path) -> None:
    assert file_of(cache).read_bytes() == CONTENT
    assert [path.name for path in file_of(cache).parent.iterdir()] == ["a.bin"]


@pytest.mark.parametrize("checksum", [None, f"md5:{hashlib.md5(CONTENT).hexdigest()}"])
@pytest.mark.parametrize("size_bytes", [len(CONTENT), None])
@pytest.mark.parametrize("gives_length", [True, False])
def test_a_download_is_whole_and_reports_its_progress(
    server: Server, tmp_path: Path, checksum: str | None, size_bytes: int | None, gives_length: bool
) -> None:
    server.gives_length = gives_length
    catalogue = catalogue_of(server.url, checksum=checksum, size_bytes=size_bytes)
    seen: list[tuple[str, int, int | None]] = []
    folder = fetch(
        "tiny", catalogue=catalogue, cache=tmp_path, progress=lambda *report: seen.append((report[0], *report[1:]))
    )
    assert folder == tmp_path / "tiny"
    assert_whole(tmp_path)
    total = len(CONTENT) if gives_length or size_bytes else None
    assert seen[0] == ("a.bin", 0, total)
    assert seen[-1] == ("a.bin", len(CONTENT), total)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_what_is_there_and_right_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    catalogue = catalogue_of(server.url)
    assert cached("tiny", catalogue=catalogue, cache=tmp_path) is None
    fetch("tiny", catalogue=catalogue, cache=tmp_path)
    assert cached("tiny", catalogue=catalogue, cache=tmp_path) == tmp_path / "tiny"
    fetch("tiny", catalogue=catalogue, cache=tmp_path)
    assert server.requests == 1


def test_a_file_that_went_bad_in_the_cache_is_fetched_again(server: Server, tmp_path: Path) -> None:
    catalogue = catalogue_of(server.url)
    fetch("tiny", catalogue=catalogue, cache=tmp_path)
    file_of(tmp_path).write_bytes(CONTENT[::-1])
    fetch("tiny", catalogue=catalogue, cache=tmp_path)
    assert_whole(tmp_path)


def test_a_broken_download_leaves_nothing_and_can_be_repeated(server: Server, tmp_path: Path) -> None:
    catalogue = catalogue_of(server.url)
    server.breaks_off_after = HALF
    with pytest.raises(DataError, match=rf"{server.url}/a\.bin: the connection broke off after \d+ bytes; "):
        fetch("tiny", catalogue=catalogue, cache=tmp_path)
    assert_nothing_left(tmp_path)
    assert cached("tiny", catalogue=catalogue, cache=tmp_path) is None
    server.breaks_off_after = None
    fetch("tiny", catalogue=catalogue, cache=tmp_path)
    assert_whole(tmp_path)


def test_wrong_content_is_removed_and_both_checksums_are_said(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[::-1]
    expected, found = (hashlib.sha256(content).hexdigest() for content in (CONTENT, CONTENT[::-1]))
    with pytest.raises(DataError, match=f"expected sha256:{expected} but got {found}") as caught:
        fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path)
    assert "\n" not in str(caught.value)
    assert_nothing_left(tmp_path)


def test_another_length_than_expected_is_refused_before_anything_is_written(server: Server, tmp_path: Path) -> None:
    server.content = b"please log in to this network"
    seen: list[int] = []
    with pytest.raises(DataError, match="expected 300000 bytes, the server offers 29"):
        fetch(
            "tiny",
            catalogue=catalogue_of(server.url),
            cache=tmp_path,
            progress=lambda _name, done, _total: seen.append(done),
        )
    assert seen == []
    assert_nothing_left(tmp_path)


def test_a_server_that_sends_more_than_expected_is_stopped(server: Server, tmp_path: Path) -> None:
    server.content = b"x" * 2 * len(CONTENT)
    server.gives_length = False
    longest = 0

    def watch(_name: str, done: int, _total: int | None) -> None:
        nonlocal longest
        longest = max(longest, done)

    with pytest.raises(DataError, match="expected at most 300000 bytes, the server sends more"):
        fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path, progress=watch)
    assert longest <= len(CONTENT)
    assert_nothing_left(tmp_path)


def test_not_found_is_one_line_with_the_address(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DataError, match=rf"cannot download {server.url}/a\.bin: 404 Not Found; check the"):
        fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path)


def test_a_refused_connection_is_one_line_with_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        url = f"http://127.0.0.1:{closed_soon.getsockname()[1]}"
    with pytest.raises(DataError, match=rf"cannot download {url}/a\.bin: there is no connection to the server"):
        fetch("tiny", catalogue=catalogue_of(url), cache=tmp_path)


@pytest.mark.slow
def test_a_stalled_server_times_out(server: Server, tmp_path: Path) -> None:
    server.stalls_after = HALF
    with pytest.raises(DataError, match=r"the connection timed out after \d+ bytes"):
        fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path, timeout_seconds=0.2)
    assert_nothing_left(tmp_path)


def test_the_file_has_its_name_only_when_it_is_whole(server: Server, tmp_path: Path) -> None:
    there_while_downloading: list[bool] = []
    fetch(
        "tiny",
        catalogue=catalogue_of(server.url),
        cache=tmp_path,
        progress=lambda *_: there_while_downloading.append(file_of(tmp_path).exists()),
    )
    assert not any(there_while_downloading)
    assert_whole(tmp_path)


def test_threads_at_once_download_once(server: Server, tmp_path: Path) -> None:
    server.stalls_after = HALF
    catalogue = catalogue_of(server.url)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(fetch, "tiny", catalogue=catalogue, cache=tmp_path) for _ in range(4)]
        assert server.half_sent.wait(timeout=20)
        server.go_on.set()
        assert {task.result(timeout=20) for task in waiting} == {tmp_path / "tiny"}
    assert server.requests == 1
    assert_whole(tmp_path)


OTHER_PROCESS = """
import sys
from pathlib import Path
from topiarist.data.readers.catalogue import PublicDataSet, RemoteFile
from topiarist.data.readers.download import fetch
url, checksum, size, cache = sys.argv[1:]
file = RemoteFile(url=f"{url}/a.bin", name="a.bin", checksum=checksum, size_bytes=int(size))
tiny = PublicDataSet(name="tiny", description="", classes=(), samples=0,
                     licence="", source="", files=(file,))
print("ready", flush=True)
fetch("tiny", catalogue={"tiny": tiny}, cache=Path(cache))
"""


def start_another_process(url: str, cache: Path) -> subprocess.Popen[bytes]:
    file = catalogue_of(url)["tiny"].files[0]
    arguments = [url, file.checksum, str(file.size_bytes), str(cache)]
    return subprocess.Popen([sys.executable, "-c", OTHER_PROCESS, *arguments], stdout=subprocess.PIPE)


def wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


@pytest.mark.slow
def test_processes_at_once_download_once(server: Server, tmp_path: Path) -> None:
    server.stalls_after = HALF
    with start_another_process(server.url, tmp_path) as first, start_another_process(server.url, tmp_path) as second:
        wait_until_ready(first)
        wait_until_ready(second)
        assert server.half_sent.wait(timeout=60)
        time.sleep(0.1)  # for the other one to reach the lock
        server.go_on.set()
        assert first.wait(timeout=60) == second.wait(timeout=60) == 0
    assert server.requests == 1
    assert_whole(tmp_path)


@pytest.mark.slow
def test_a_killed_process_leaves_no_lock_and_its_half_is_removed(server: Server, tmp_path: Path) -> None:
    server.stalls_after = HALF
    with start_another_process(server.url, tmp_path) as killed:
        assert server.half_sent.wait(timeout=60)
        deadline = time.monotonic() + 20
        while not any(path.is_file() and path.stat().st_size for path in (tmp_path / "tiny").rglob("*")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        killed.kill()
    assert not file_of(tmp_path).exists()
    server.stalls_after = None
    fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path)
    assert_whole(tmp_path)


def test_a_cache_that_cannot_be_written_is_one_line(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TopiaristError, match=r"cannot write .*file/tiny: Not a directory"):
        fetch("tiny", catalogue=catalogue_of(server.url), cache=tmp_path / "file")
    assert server.requests == 0


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no data set 'imagenet' to download; there are cifar10, cifar100, "):
        fetch("imagenet", cache=tmp_path)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TOPIARIST_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "topiarist"
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_folder() == Path("/shared/topiarist")
    monkeypatch.setenv("TOPIARIST_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_is_complete(name: str) -> None:
    data_set = CATALOGUE[name]
    assert data_set.name == name
    assert len(set(data_set.classes)) == len(data_set.classes) == (100 if name == "cifar100" else 10)
    assert data_set.size_bytes is not None
    assert all((data_set.description, data_set.licence, data_set.source))
    for file in data_set.files:
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", file.checksum)
        assert file.url.startswith("https://") or name == "svhn"
        assert file.url.endswith(f"/{file.name}")
        assert Path(file.name).name == file.name
