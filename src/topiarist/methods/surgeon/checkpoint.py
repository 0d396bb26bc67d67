"""The checkpoint of an evolution: all that it takes to resume after a crash, in one file that is whole or not there.

It is written after every decision, and between those that are far apart. Random choices follow from names, so no
generator is stored; a network is rebuilt from the one at the start and its edits.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field
from torch import Tensor, nn

from topiarist.evolution.lineage import Lineage
from topiarist.files import JsonObject
from topiarist.methods.surgeon.branches import Branch
from topiarist.models.evaluation import under
from topiarist.settings import Record
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.edits.plan import attach_plan
from topiarist.surgery.replaying import rebuild
from topiarist.training.resumable import FINGERPRINT, read_resumable, refusing_damage, write_resumable

KEY = "surgeon"


@dataclass(frozen=True)
class CheckpointState:
    """An evolution after a decision: its branches, its lineage, and what its strategy remembers."""

    branches: Sequence[Branch]
    lineage: Lineage
    strategy: JsonObject


class BranchRecord(Record):
    """What a checkpoint says of a branch, beside its tensors."""

    plan: JsonObject
    node: int = Field(ge=0)
    steps: int = Field(ge=0)
    loss: float
    accuracy: float


@dataclass(frozen=True)
class SurgeonCheckpoint:
    """A file with the last state of an evolution; that of another evolution is never loaded."""

    path: Path
    fingerprint: str

    def write(self, state: CheckpointState) -> None:
        """Replace the last state."""
        tensors: dict[str, Tensor] = {}
        for number, branch in enumerate(state.branches):
            tensors |= {f"{number}/{name}": value for name, value in _tensors_of(branch)}
        header = {
            FINGERPRINT: self.fingerprint,
            "branches": [_record_of(branch) for branch in state.branches],
            "lineage": state.lineage.to_record(),
            "strategy": state.strategy,
        }
        write_resumable(self.path, KEY, header, tensors)

    def read(self, whole: nn.Module) -> CheckpointState | None:
        """Return the last state of this very evolution, which began with a network; None where there is none."""
        if not self.path.exists():
            return None
        with self.resuming():
            found = read_resumable(self.path, KEY, self.fingerprint)
            if found is None:
                return None
            header, tensors = found
            branches = [
                _branch_from(BranchRecord.model_validate(record), under(f"{number}/", tensors), whole)
                for number, record in enumerate(header["branches"])
            ]
            lineage = Lineage.from_record(header["lineage"])
            strange = [branch.node for branch in branches if branch.node >= len(lineage.nodes)]
            if strange or not branches:
                raise ValueError(f"its {len(branches)} networks are not those of its lineage")
            return CheckpointState(branches, lineage, header["strategy"])

    def resuming(self) -> AbstractContextManager[None]:
        """Refuse the file in one line where what it says cannot be taken up."""
        return refusing_damage(self.path)

    def remove_file(self) -> None:
        """Remove the file, when all is done."""
        self.path.unlink(missing_ok=True)


def _tensors_of(branch: Branch) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a branch by name: weights, the optimizer's state, probabilities, numbers of refits."""
    yield "probabilities", branch.probabilities
    yield from ((f"weights/{name}", value) for name, value in branch.model.state_dict().items())
    for name, known in branch.memory.items():
        yield from ((f"memory/{name}/{key}", value) for key, value in known.items())
    for number, (_, numbers) in enumerate(plan_of(branch.model).steps()):
        yield from ((f"numbers/{number}/{name}", value) for name, value in numbers.items())


def _record_of(branch: Branch) -> JsonObject:
    return BranchRecord(
        plan=dict(plan_of(branch.model).to_record()),
        node=branch.node,
        steps=branch.steps,
        loss=branch.loss,
        accuracy=branch.accuracy,
    ).model_dump()


def _branch_from(record: BranchRecord, tensors: dict[str, Tensor], whole: nn.Module) -> Branch:
    known, plan = plan_of(whole), Plan.from_record(record.plan)
    model = rebuild(Plan(plan.edits[len(known) :], plan.example), whole)
    model.load_state_dict(under("weights/", tensors))
    numbers = tuple(under(f"numbers/{number}/", tensors) for number in range(len(plan)))
    attach_plan(model, Plan(plan.edits, plan.example, numbers))
    memory: dict[str, dict[str, Tensor]] = {}
    for name, value in under("memory/", tensors).items():
        parameter, _, key = name.rpartition("/")
        memory.setdefault(parameter, {})[key] = value
    forms = {name: (parameter.shape, parameter.dtype) for name, parameter in model.named_parameters()}
    found = [(name, value) for name, known in memory.items() for value in known.values()]
    fits = all((value.shape, value.dtype) == forms.get(name) for name, value in found)
    if not fits or len({frozenset(known) for known in memory.values()}) > 1:
        raise ValueError("what the optimizer remembers does not fit the network")
    return Branch(
        model=model.eval(),
        node=record.node,
        steps=record.steps,
        memory={name: memory[name] for name, _ in model.named_parameters() if name in memory},
        loss=record.loss,
        accuracy=record.accuracy,
        probabilities=tensors["probabilities"],
    )
