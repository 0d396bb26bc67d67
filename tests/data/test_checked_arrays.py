"""A file of kept arrays whose checksums were damaged holds nothing, whatever they are now."""

from pathlib import Path

import numpy
import pytest
from safetensors.numpy import save_file

from topiarist.data.checked_arrays import names_in, read_array, write_arrays


def test_what_was_written_is_found(tmp_path: Path) -> None:
    write_arrays(tmp_path / "kept", {"one": numpy.ones(3)})
    found = read_array(tmp_path / "kept", "one")
    assert names_in(tmp_path / "kept") == ("one",) and found is not None and found.tolist() == [1, 1, 1]


@pytest.mark.parametrize("checksums", ["[[1]]", "null", "1", '"one"', "[", "[" * 9_999])
def test_checksums_that_are_none_hold_nothing(tmp_path: Path, checksums: str) -> None:
    save_file({"one": numpy.ones(3)}, tmp_path / "kept", metadata={"checksums": checksums})
    assert names_in(tmp_path / "kept") == () and read_array(tmp_path / "kept", "one") is None
