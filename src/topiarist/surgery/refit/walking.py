"""Networks that run side by side on all batches at once, and stop together at every layer that is asked for.

Every run is a thread of its own, which waits at a layer until it is sent on: so each network runs once, however many
layers are looked at, and what is held in memory is what the runs themselves hold where they wait. As many runs move at
a time as there are cores, each with one thread of torch's; what is found does not depend on that. Networks that draw
random numbers move one at a time, each with the same numbers of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Semaphore, Thread, local
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.models.attention import free_attention
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import global_states, isolated, set_global_states
from topiarist.surgery.calibration import CalibrationBatches, first_of, unreadable, with_first
from topiarist.surgery.refit.operations import OperationsWatched, OwnReader
from topiarist.threads import torch_threads, usable_cores
from topiarist.tracing.running import Args, Kwargs

MOST_NUMBERS = 2**29  # held by all runs where they wait: 2 GB in float32
_here = local()  # the run of the thread that a hook is called in


States = list[Tensor]  # of random generators


class _LeftError(Exception):
    """A run that nobody looks at any more."""


@dataclass
class Visit:
    """What a layer read and returned in one run, each time that it was called; nothing was returned before it runs.

    `states` are what recurrent layers are given to begin with, None where nothing is.
    """

    taken: list[Tensor] = field(default_factory=list)
    given: list[Tensor] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)


class _Run:
    """One network on one batch, in a thread that waits at layers."""

    def __init__(self, model: nn.Module, args: Args, kwargs: Kwargs, turns: Semaphore, state: States | None) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self._turns, self._state = turns, state  # of torch's generator, where random numbers are drawn
        self.at: str | None = None
        self.visits: dict[str, Visit] = {}
        self.error: BaseException | None = None
        self._onward, self._arrived = Event(), Event()
        self._left = False
        self.watched: AbstractContextManager[Any] = nullcontext()  # operations that are stopped at
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
        self._end_turn()
        self._onward.wait()
        self._onward.clear()
        self._take_turn()
        if self._left:
            raise _LeftError

    def _take_turn(self) -> None:
        self._turns.acquire()
        if self._state is not None:
            set_global_states(self._state, numbers_of(self.model).device)

    def _end_turn(self) -> None:
        if self._state is not None:
            self._state = global_states(numbers_of(self.model).device)
        self._turns.release()
        self._arrived.set()

    def _work(self) -> None:
        _here.run = self
        torch.get_num_threads()  # a new thread computes on all cores until it asks for the number that was set
        self._take_turn()
        try:
            with torch.no_grad(), self.watched:
                self.model(*self.args, **self.kwargs)
        except _LeftError:
            pass
        except (RuntimeError, ValueError, TypeError) as error:
            self.error = unreadable(error)
        except BaseException as error:
            self.error = error
        finally:
            self.at = None
            self._end_turn()


@dataclass(frozen=True)
class Stop:
    """A layer to stop at, how often it runs, and how many numbers a run holds per sample, from there on at most.

    `reader` is the parameter to stop at where it is no layer.
    """

    path: str
    count: int
    held: int = 1
    reader: OwnReader | None = None


class Walk:
    """Two networks of the same layers on all batches: the whole one stops behind each layer, the other before it.

    Parameters
    ----------
    whole, cut : nn.Module
        The networks; weights of the second may change while it waits.
    batches : CalibrationBatches
        All of it is in memory during the walk. Batches begin when there is room for what they hold where they wait:
        those that begin late run through the layers that the others have passed, and cost no more.
    stops : Sequence[Stop]
        The layers to stop at, in the order in which they run; the runs wait where a layer runs for the last time.
    draws : bool
        Whether the networks draw random numbers.
    """

    def __init__(
        self, whole: nn.Module, cut: nn.Module, batches: CalibrationBatches, stops: Sequence[Stop], *, draws: bool
    ) -> None:
        self.whole, self.cut, self.batches, self.draws = whole, cut, batches, draws
        self.stops = {stop.path: stop for stop in stops}
        self._passed: set[str] = set()
        self._runs: list[tuple[_Run, _Run]] = []  # those that have begun
        self._later: list[tuple[_Run, _Run]] = []
        self._stack = ExitStack()

    def __enter__(self) -> "Walk":
        turns = Semaphore(1 if self.draws else usable_cores())
        with self._stack as stack:
            stack.enter_context(torch_threads(1))
            device = numbers_of(self.whole).device
            stack.enter_context(isolated(0, device))
            state = global_states(device) if self.draws else None
            for model, after in ((self.whole, True), (self.cut, False)):
                stack.enter_context(evaluating(model))
                stack.enter_context(free_attention(model))
                stack.enter_context(self._hooked(model, after=after))
            for args, kwargs in self.batches:
                models = self.whole, self.cut
                one, other = (self._run(model, args, kwargs, turns, state) for model in models)
                self._later.append((one, other))
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _run(self, model: nn.Module, args: Args, kwargs: Kwargs, turns: Semaphore, state: States | None) -> _Run:
        """Return a run that stops at layers, which have hooks, and at operations, which it watches itself."""
        run = _Run(model, args, kwargs, turns, state)
        readers = {stop.path: stop.reader for stop in self.stops.values() if stop.reader is not None}

        def arrive(path: str, read: Tensor) -> None:
            visit, count = run.visits.setdefault(path, Visit()), self.stops[path].count
            visit.taken.append(_kept(read, count))
            if len(visit.taken) == count:
                run.stop(path)

        if readers:
            run.watched = OperationsWatched(model, readers, arrive)
        return run

    def visit(self, path: str) -> list[tuple[Visit, Visit]]:
        """Return what both networks show of a layer, batch by batch; batches that do not come to it are left out."""
        self._begin(self.stops[path].held)
        for run in self._all:
            run.wait()
            while run.at is not None and run.at in self._passed:  # another order than that of the first batch
                run.go_on()
                run.wait()
        waiting = [(whole, cut) for whole, cut in self._runs if whole.at == cut.at == path]
        return [(whole.visits[path], cut.visits[path]) for whole, cut in waiting]

    def _begin(self, held: int) -> None:
        """Let as many runs begin as memory has room for, one of each network at least; they pass by what is fitted."""
        while self._later and (not self._runs or (self.samples + self._later[0][0].samples) * held <= MOST_NUMBERS):
            pair = self._later.pop(0)
            self._runs.append(pair)
            for run in pair:
                run.start()

    def narrow(self, path: str, axis: int, kept: Tensor) -> None:
        """Let a layer of the cut network, at which the runs wait, read only some positions along an axis."""
        for _, cut in self._runs:
            if cut.at == path:
                taken = cut.visits[path].taken
                taken[-1] = taken[-1].index_select(axis, kept.to(taken[-1].device))

    def pass_by(self, path: str) -> None:
        """Send the runs on that wait at a layer."""
        self._passed.add(path)
        for run in self._all:
            if run.at == path:
                run.go_on()

    @property
    def samples(self) -> int:
        """Return how many samples there are in the batches that have begun."""
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
        for path, count in ((stop.path, stop.count) for stop in self.stops.values() if stop.reader is None):
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
    return tensor if count == 1 or not isinstance(tensor, Tensor) else tensor.clone()


def _second_of(args: Args, kwargs: Kwargs) -> Any:
    """Return the state that a recurrent layer is called with, by position or by name."""
    return args[1] if len(args) > 1 else kwargs.get("hx")


def _seen_before(path: str, count: int) -> Callable[..., tuple[Args, Kwargs] | None]:
    def hook(_: nn.Module, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs] | None:
        run: _Run = _here.run
        visit = run.visits.setdefault(path, Visit())
        given = _kept(first_of(args, kwargs), count)
        visit.taken.append(given)
        visit.states.append(_second_of(args, kwargs))
        if len(visit.taken) == count:
            run.stop(path)
            if visit.taken[-1] is not given:  # it was narrowed
                return with_first(args, kwargs, visit.taken[-1])
        return None

    return hook


def _seen_after(path: str, count: int) -> Callable[..., None]:
    def hook(_: nn.Module, args: Args, kwargs: Kwargs, given: Any) -> None:
        run: _Run = _here.run
        visit = run.visits.setdefault(path, Visit())
        visit.taken.append(_kept(first_of(args, kwargs), count))
        visit.states.append(_second_of(args, kwargs))
        visit.given.append(_kept(given, count))
        if len(visit.taken) == count:
            run.stop(path)

    return hook
