import os

import pytest
import torch
from threadpoolctl import threadpool_info

from topiarist.errors import SettingsError
from topiarist.threads import flushes_denormals, one_thread, torch_threads, usable_cores, without_denormals


@pytest.mark.parametrize("count", [None, 1, 2])
def test_threads_are_as_asked_inside_and_as_before_outside(count: int | None) -> None:
    before = torch.get_num_threads()
    with torch_threads(count):
        assert torch.get_num_threads() == (before if count is None else count)
    assert torch.get_num_threads() == before


def test_threads_come_back_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="stop"), torch_threads(before + 1):
        raise ValueError("stop")
    assert torch.get_num_threads() == before


def test_on_one_thread_all_libraries_have_one_and_have_theirs_again_outside() -> None:
    with torch_threads(2):
        before = [pool["num_threads"] for pool in threadpool_info()]
        with one_thread():
            assert torch.get_num_threads() == 1
            assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        assert torch.get_num_threads() == 2 and [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("count", [0, -1])
def test_less_than_one_thread_is_refused(count: int) -> None:
    with pytest.raises(SettingsError, match=f"threads must be at least 1; found {count}"), torch_threads(count):
        pass


def test_denormals_are_nothing_inside_and_as_before_outside() -> None:
    denormal = torch.tensor([1e-40])
    with pytest.raises(ValueError, match="stop"), without_denormals():
        assert (denormal * 1.0).item() == 0 and flushes_denormals()
        with without_denormals():
            pass
        assert flushes_denormals()
        raise ValueError("stop")
    assert (denormal * 1.0).item() > 0 and not flushes_denormals()


def test_usable_cores_are_those_of_this_process_or_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS and Windows
    assert usable_cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
