"""Networks that run side by side on all batches at once, and stop together at every layer that is asked for.

Every run is a thread of its own, which waits at a layer until it is sent on: so each network runs once, however many
layers are looked at, and what is held in memory is what the runs themselves hold where they wait. As many runs move at
a time as there are cores, each with one thread of torch's; what is found does not depend on that.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Semaphore, Thread, local
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.attention import free_attention
from topiarist.models.evaluation import evaluating
from topiarist.surgery.calibration import CalibrationBatches, first_of
from topiarist.threads import torch_threads, usable_cores
from topiarist.tracing.running import Args, Kwargs

_here = local()  # the run of the thread that a hook is called in


class _LeftError(Exception):
    """A run that nobody looks at any more."""


@dataclass
class Visit:
    """What a layer read and returned in one run, each time that it was called; nothing was returned before it runs."""

    taken: list[Tensor] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)


class _Run:
    """One network on one batch, in a thread that waits at layers."""

    def __init__(self, model: nn.Module, args: Args, kwargs: Kwargs, turns: Semaphore) -> None:
        self.model, self.args, self.kwargs, self.turns = model, args, kwargs, turns
        self.at: str | None = None
        self.visits: dict[str, Visit] = {}
        self.error: BaseException | None = None
        self._onward, self._arrived = Event(), Event()
        self._left = False
        self._thread = Thread(target=self._work, daemon=True)

    @property
    def samples(self) -> int:
        """Return how many samples the batch has."""
        tensors = [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, Tensor) and value.ndim]
        return len(tensors[0]) if tensors else 1

    def start(self) -> None:
        """Run to the first layer."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until the run has come to a layer, or to its end; raise what it raised."""
        self._arrived.wait()
        if self.error is not None:
            raise self.error

    def go_on(self) -> None:
        """Run to the next layer."""
        self._arrived.clear()
        self.visits.pop(self.at or "", None)
        self._onward.set()

    def leave(self) -> None:
        """End the run where it is."""
        self._left = True
        self._onward.set()
        self._thread.join()

    def stop(self, path: str) -> None:
        """Wait at a layer; called by its hook, in the run's own thread."""
        self.at = path
        self.turns.release()
        self._arrived.set()
        self._onward.wait()
        self._onward.clear()
        self.turns.acquire()
        if self._left:
            raise _LeftError

    def _work(self) -> None:
        _here.run = self
        self.turns.acquire()
        try:
            with torch.no_grad():
                self.model(*self.args, **self.kwargs)
        except _LeftError:
            pass
        except (RuntimeError, ValueError, TypeError) as error:
            reason = str(error).split("\n")[0]
            self.error = ModelError(f"the network cannot read the calibration data: {reason}")
        except BaseException as error:
            self.error = error
        finally:
            self.at = None
            self.turns.release()
            self._arrived.set()


class Walk:
    """Two networks of the same layers on all batches: the whole one stops behind each layer, the other before it.

    Parameters
    ----------
    whole, cut : nn.Module
        The networks; weights of the second may change while it waits.
    batches : CalibrationBatches
        All of it is in memory during the walk, as is what the networks hold where they wait.
    calls : Mapping[str, int]
        The layers to stop at, in the order in which they run, and how often each runs: the runs wait at the last time.
    """

    def __init__(self, whole: nn.Module, cut: nn.Module, batches: CalibrationBatches, calls: Mapping[str, int]) -> None:
        self.whole, self.cut, self.batches, self.calls = whole, cut, batches, dict(calls)
        self.cores = usable_cores()
        self._passed: set[str] = set()
        self._runs: list[tuple[_Run, _Run]] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Walk":
        turns = Semaphore(self.cores)
        with self._stack as stack:
            stack.enter_context(torch_threads(1))
            for model, after in ((self.whole, True), (self.cut, False)):
                stack.enter_context(evaluating(model))
                stack.enter_context(free_attention(model))
                stack.enter_context(self._hooked(model, after=after))
            for args, kwargs in self.batches:
                self._runs.append((_Run(self.whole, args, kwargs, turns), _Run(self.cut, args, kwargs, turns)))
            stack.callback(self._leave)
            for run in self._all:
                run.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def visit(self, path: str) -> Iterator[tuple[Visit, Visit]]:
        """Yield what both networks show of a layer, batch by batch; batches that do not come to it are left out."""
        for run in self._all:
            run.wait()
            while run.at is not None and run.at in self._passed:  # another order than that of the first batch
                run.go_on()
                run.wait()
        for whole, cut in self._runs:
            if whole.at == cut.at == path:
                yield whole.visits[path], cut.visits[path]

    def pass_by(self, path: str) -> None:
        """Send the runs on that wait at a layer."""
        self._passed.add(path)
        for run in self._all:
            if run.at == path:
                run.go_on()

    @property
    def samples(self) -> int:
        """Return how many samples there are in all batches."""
        return sum(run.samples for run, _ in self._runs)

    @property
    def _all(self) -> Iterator[_Run]:
        for pair in self._runs:
            yield from pair

    def _leave(self) -> None:
        for run in self._all:
            run.leave()

    @contextmanager
    def _hooked(self, model: nn.Module, *, after: bool) -> Iterator[None]:
        handles = []
        for path, count in self.calls.items():
            module = model.get_submodule(path)
            if after:
                handles.append(module.register_forward_hook(_seen_after(path, count), with_kwargs=True))
            else:
                handles.append(module.register_forward_pre_hook(_seen_before(path, count), with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _kept(tensor: Tensor, count: int) -> Tensor:
    """Return a tensor that stays as it is: forward goes on, and may write into it, unless it waits at once."""
    return tensor if count == 1 else tensor.clone()


def _seen_before(path: str, count: int) -> Callable[..., None]:
    def hook(_: nn.Module, args: Args, kwargs: Kwargs) -> None:
        run: _Run = _here.run
        visit = run.visits.setdefault(path, Visit())
        visit.taken.append(_kept(first_of(args, kwargs), count))
        if len(visit.taken) == count:
            run.stop(path)

    return hook


def _seen_after(path: str, count: int) -> Callable[..., None]:
    def hook(_: nn.Module, args: Args, kwargs: Kwargs, given: Any) -> None:
        run: _Run = _here.run
        visit = run.visits.setdefault(path, Visit())
        visit.taken.append(_kept(first_of(args, kwargs), count))
        visit.given.append(_kept(given, count))
        if len(visit.taken) == count:
            run.stop(path)

    return hook
