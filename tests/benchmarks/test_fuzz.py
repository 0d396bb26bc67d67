"""The short form of `make fuzz`: damaged files of every kind are read, or refused in one line."""

import random  # noqa: TID251  # a generator of its own, from a seed
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.fuzz import NOTHING, changed_file, wrong_of
from benchmarks.fuzzing.corpus import READERS, write_corpus
from benchmarks.fuzzing.reading import READ, result_of

EACH = 12  # files per reader: about 5 seconds in all
FEWER = {"work folder": 3, "hub": 4, "study folder": 4}  # what takes a part of a second

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "whole")


def test_whole_files_are_read(whole: dict[str, list[Path]]) -> None:
    assert {result_of(reader, file) for reader, files in whole.items() for file in files} == {"read"}
    assert set(whole) == set(READERS) == set(READ)


@pytest.mark.parametrize("reader", READERS)
def test_damaged_files_are_read_or_refused_in_one_line(
    whole: dict[str, list[Path]], tmp_path: Path, reader: str
) -> None:
    draw, seen = random.Random(reader), Counter[str]()
    for number in range(FEWER.get(reader, EACH)):
        source = draw.choice(whole[reader])
        file = tmp_path / f"{number}-{source.name}"
        file.write_bytes(changed_file(source, draw, other=draw.choice(whole[reader])))
        seen[result_of(reader, file)] += 1
    assert set(seen) <= {"read", "refused"}, f"files in {tmp_path}"


def test_results_say_what_came_of_files_and_nothing_is_hidden() -> None:
    fine = Counter(read=3, refused=4)
    assert wrong_of({"a": fine, "b": Counter(refused=1)}) == NOTHING
    assert wrong_of({"a": fine, "b": Counter(read=1, hang=2, KeyError=1)}) == "KeyError: 1, hang: 2."


def test_changes_reach_what_a_digest_guards(whole: dict[str, list[Path]], tmp_path: Path) -> None:
    """Of changed model files, few are refused because of their digest: most, for what they say."""
    draw, reasons = random.Random(1), Counter[bool]()
    for _ in range(90):
        file = tmp_path / "m.safetensors"
        file.write_bytes(changed_file(draw.choice(whole["model"]), draw, other=whole["model"][0]))
        try:
            READ["model"](file)
        except Exception as error:
            reasons["digest" in str(error) or "safetensors file" in str(error)] += 1
    assert reasons[False] > reasons[True]
