"""The checkpoint of an evolution: all that it takes to resume after a crash, in one file that is whole or not there.

It is written after every decision, and between those that are far apart. Random choices follow from names, so no
generator is stored; a network is rebuilt from the one at the start and its edits.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.evolution.lineage import Lineage
from topiarist.files import JsonObject, write_atomically
from topiarist.methods.surgeon.branches import Branch
from topiarist.models.evaluation import under
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.edits.plan import attach_plan
from topiarist.surgery.replaying import rebuild

KEY = "surgeon"


@dataclass(frozen=True)
class CheckpointState:
    """An evolution after a decision: its branches, its lineage, and what its strategy remembers."""

    branches: Sequence[Branch]
    lineage: Lineage
    strategy: JsonObject


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
            "fingerprint": self.fingerprint,
            "branches": [_record_of(branch) for branch in state.branches],
            "lineage": state.lineage.to_record(),
            "strategy": state.strategy,
        }
        copied = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        write_atomically(self.path, save(copied, {KEY: json.dumps(header)}))

    def read(self, whole: nn.Module) -> CheckpointState | None:
        """Return the last state of this very evolution, which began with a network; None where there is none."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                header = json.loads((file.metadata() or {}).get(KEY, "{}"))
                if header.get("fingerprint") != self.fingerprint:
                    return None
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelError(f"the checkpoint {self.path} cannot be read ({error}): remove it to start over") from error
        branches = [
            _branch_from(record, under(f"{number}/", tensors), whole)
            for number, record in enumerate(header["branches"])
        ]
        return CheckpointState(branches, Lineage.from_record(header["lineage"]), header["strategy"])

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
    return {
        "plan": plan_of(branch.model).to_record(),
        "node": branch.node,
        "steps": branch.steps,
        "loss": branch.loss,
        "accuracy": branch.accuracy,
    }


def _branch_from(record: JsonObject, tensors: dict[str, Tensor], whole: nn.Module) -> Branch:
    known, plan = plan_of(whole), Plan.from_record(record["plan"])
    model = rebuild(Plan(plan.edits[len(known) :], plan.example), whole)
    model.load_state_dict(under("weights/", tensors))
    numbers = tuple(under(f"numbers/{number}/", tensors) for number in range(len(plan)))
    attach_plan(model, Plan(plan.edits, plan.example, numbers))
    memory: dict[str, dict[str, Tensor]] = {}
    for name, value in under("memory/", tensors).items():
        parameter, _, key = name.rpartition("/")
        memory.setdefault(parameter, {})[key] = value
    return Branch(
        model=model.eval(),
        node=record["node"],
        steps=record["steps"],
        memory={name: memory[name] for name, _ in model.named_parameters() if name in memory},
        loss=record["loss"],
        accuracy=record["accuracy"],
        probabilities=tensors["probabilities"],
    )
