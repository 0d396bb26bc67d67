"""Runs the tasks of a rightsizing: here, or on the workers of a pool; what was done before is read, not done again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from torch import nn

from topiarist.data import Data
from topiarist.errors import TopiaristError
from topiarist.models import attach, card_of
from topiarist.models.stacked import stackable
from topiarist.parallel import Pool
from topiarist.rightsizing.clock import OutOfTimeError
from topiarist.rightsizing.folds import to_train_on
from topiarist.rightsizing.making import Made, MadeNetwork, check_places, make_dense
from topiarist.rightsizing.stages import Stages
from topiarist.training import History, TrainConfig
from topiarist.training.loop import OnEpoch
from topiarist.training.rescue import train_with_rescue

OnDone = Callable[[int], None]
Function = Callable[[Any, Any], Made | None]  # of a task and what all share; None at the deadline


class StageTask(Protocol):
    """A piece of work: the name of its stage, and the network that each of its networks is made of."""

    @property
    def name(self) -> str:
        """What its result is kept as."""
        ...

    def fold_of(self, place: int) -> int:
        """Return the number of the network that the one at a place is made of."""
        ...

    def check(self, made: Made) -> None:
        """Raise ValueError where a result that was read cannot be that of this task."""
        ...


@dataclass(frozen=True)
class Runner:
    """Where tasks run, what they share, and where their results are kept.

    `wholes` are the networks that those of a result are made of. Without a pool, tasks run here; the workers of one
    share the same already.
    """

    shared: Any
    wholes: Sequence[nn.Module]
    stages: Stages = field(default_factory=Stages)
    pool: Pool | None = None

    def run(
        self, function: Callable[[Any, Any], Made | None], tasks: Sequence[StageTask], on_done: OnDone
    ) -> list[Made]:
        """Return what each task made; raise OutOfTimeError where the deadline comes first.

        `on_done` is told how many are done.
        """
        found: dict[int, Made] = {}
        for number, task in enumerate(tasks):
            known = self.stages.read(task.name, partial(self._whole_of, task), task.check)
            if known is not None:
                found[number] = known
        left = [number for number in range(len(tasks)) if number not in found]
        for place, made in self._done(function, [tasks[number] for number in left]):
            if made is None:
                raise OutOfTimeError
            number = left[place]
            found[number] = self.stages.keep(tasks[number].name, made)
            on_done(len(found))
        return [found[number] for number in range(len(tasks))]

    def _whole_of(self, task: StageTask, place: int) -> nn.Module:
        return self.wholes[task.fold_of(place)]

    def _done(self, function: Function, tasks: Sequence[StageTask]) -> Iterator[tuple[int, Made | None]]:
        """Yield results as they come, each with the place of its task."""
        if self.pool is None or not tasks:
            yield from ((place, function(task, self.shared)) for place, task in enumerate(tasks))
            return
        for result in self.pool.run(function, tasks):
            if result.reason is not None:
                raise TopiaristError(f"{tasks[result.number].name}: {result.reason}")
            yield result.number, result.value


@dataclass(frozen=True)
class Crew:
    """Who works: the workers, if there are any, and where what they did is kept."""

    stages: Stages = field(default_factory=Stages)
    pool: Pool | None = None

    def run(
        self,
        function: Function,
        tasks: Sequence[StageTask],
        shared: Any,
        wholes: Sequence[nn.Module] = (),
        on_done: OnDone = lambda done: None,
    ) -> list[Made]:
        """Run tasks that share something of their own; a single one runs here."""
        if self.pool is None or len(tasks) == 1:
            return Runner(shared, wholes, self.stages).run(function, tasks, on_done)
        with self.pool.sharing(shared) as pool:
            return Runner(shared, wholes, self.stages, pool).run(function, tasks, on_done)


@dataclass(frozen=True)
class BaselineTask:
    """Networks to train from the start, each on the data of its number."""

    numbers: tuple[int, ...]
    networks: tuple[nn.Module, ...]
    configs: tuple[TrainConfig, ...]

    @property
    def name(self) -> str:
        """What its result is kept as."""
        return f"baseline-{self.numbers[0]}" if len(self.numbers) == 1 else "baselines"

    def fold_of(self, place: int) -> int:
        """Return the number of a network by its place in the result, which is that number."""
        return place

    def check(self, made: Made) -> None:
        """Raise ValueError where a result has other networks, or one of which no training is known."""
        check_places(made, self.numbers, trained=True)


def train_baseline(task: BaselineTask, datas: Sequence[Data], on_epoch: OnEpoch | None = None) -> Made:
    """Train networks from the start."""
    own = [datas[number] for number in task.numbers]
    histories, notes = train_with_rescue(task.networks, own, task.configs, on_epoch=on_epoch)
    for network in task.networks:
        make_dense(network)
    made = {
        number: MadeNetwork(network, (), (history,), None)
        for number, network, history in zip(task.numbers, task.networks, histories, strict=True)
    }
    return Made(made, notes)


@dataclass(frozen=True)
class KeptFit:
    """Trains baselines as `train_with_rescue` does, one stack here or one by one on workers; what is done is kept."""

    crew: Crew
    on_done: OnDone

    def __call__(
        self,
        models: Sequence[nn.Module],
        datas: Sequence[Data],
        configs: Sequence[TrainConfig],
        *,
        on_epoch: OnEpoch | None = None,
    ) -> tuple[list[History], tuple[str, ...]]:
        """Train them in place."""
        every = range(len(models))
        groups = [tuple(every)] if stackable(models[0]) else [(number,) for number in every]
        tasks = [
            BaselineTask(group, tuple(models[i] for i in group), tuple(configs[i] for i in group)) for group in groups
        ]
        here = len(tasks) == 1 or self.crew.pool is None
        train = partial(train_baseline, on_epoch=on_epoch) if here else train_baseline
        shared = datas if here else [to_train_on(data) for data in datas]
        results = self.crew.run(train, tasks, shared, models, self.on_done)
        made = {number: network for result in results for number, network in result.networks.items()}
        for number, network in enumerate(models):
            trained = made[number].model
            if trained is not network:
                network.load_state_dict(trained.state_dict())
                attach(network.eval(), card_of(trained))
        notes = dict.fromkeys(note for result in results for note in result.notes)
        return [made[number].histories[0] for number in every], tuple(notes)
