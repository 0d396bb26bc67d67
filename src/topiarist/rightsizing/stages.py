"""The work folder of a rightsizing: each finished stage as a file, so that the same command resumes after any end.

A stage is one safetensors file, whole or not there: the weights of networks, and in its header how they came about.
Nothing is unpickled: a network is rebuilt from the one of its fold and its edits. The folder says whose work it holds,
and one process at a time works in it.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from topiarist.data import Data, LazySamples, Part
from topiarist.errors import SettingsError
from topiarist.evolution.lineage import Lineage
from topiarist.files import JsonObject, cannot_write, canonical_json, check_folder, parse_json, write_atomically
from topiarist.models import attach, card_of
from topiarist.models.evaluation import under
from topiarist.rightsizing.making import Made, MadeNetwork
from topiarist.storage.header import make_header, parse_header
from topiarist.study.lock import only_driver
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.edits.plan import attach_plan
from topiarist.surgery.replaying import rebuild
from topiarist.training import History
from topiarist.training.resumable import read_resumable, refusing_damage, write_resumable

KEY, IDENTITY, SUFFIX = "topiarist-stage", "identity.json", ".safetensors"
Base = Callable[[int], nn.Module]  # the network that those of a place were made of


@dataclass
class Stages:
    """What is done, by the name of the stage; without a folder, nothing is kept.

    `on_resume` is told how many stages were finished before, where any were.
    """

    folder: Path | None = None
    on_resume: Callable[[int], None] = lambda finished: None

    def identify(self, identity_of: Callable[[], Mapping[str, str]]) -> None:
        """Begin the work of a rightsizing, or raise SettingsError where the folder holds that of another."""
        if self.folder is None:
            return
        identity = identity_of()
        place = self.folder / IDENTITY
        if not place.exists():
            write_atomically(place, canonical_json(dict(identity)).encode())
            return
        with self.reading(IDENTITY):
            known = parse_json(place.read_text(encoding="utf-8"))
            other = [name for name in identity if known.get(name) != identity[name]]
        if other:
            raise SettingsError(
                f"{self.folder} holds the unfinished work of another rightsizing (other {', '.join(other)}): remove it"
                " to start over, or choose another folder"
            )
        if finished := len(list(self.folder.glob(f"*{SUFFIX}"))):
            self.on_resume(finished)

    def read(self, name: str, base: Base, check: Callable[[Made], None] = lambda made: None) -> Made | None:
        """Return what a stage made; None where it is not finished. `check` raises where it cannot be that."""
        if self.folder is None or not (place := self.folder / f"{name}{SUFFIX}").exists():
            return None
        with self.reading(place.name):
            header, tensors = read_resumable(place, KEY) or ({}, {})
            places: dict[str, int] = header["places"]
            first = {number: int(key) for key, number in reversed(places.items())}
            networks = [
                _read_network(record, under(f"{number}/", tensors), base(first[number]))
                for number, record in enumerate(header["networks"])
            ]
            made = {int(key): networks[number] for key, number in places.items()}
            found = Made(made, tuple(map(str, header["notes"])), under("made/", tensors))
            check(found)
            return found

    def keep(self, name: str, made: Made) -> Made:
        """Write what a stage made, and return it."""
        if self.folder is None:
            return made
        once = {id(network): network for network in made.networks.values()}
        numbers = {key: number for number, key in enumerate(once)}
        tensors = {f"made/{key}": value for key, value in made.tensors.items()}
        for number, network in enumerate(once.values()):
            tensors |= {f"{number}/{key}": value for key, value in _tensors_of(network.model)}
        header = {
            "networks": [_network_record(network) for network in once.values()],
            "places": {str(place): numbers[id(network)] for place, network in made.networks.items()},
            "notes": list(made.notes),
        }
        write_resumable(self.folder / f"{name}{SUFFIX}", KEY, header, tensors)
        return made

    def text(self, name: str, make: Callable[[], str]) -> str:
        """Return the text of a stage, made and written the first time."""
        if self.folder is None:
            return make()
        place = self.folder / name
        if not place.exists():
            write_atomically(place, make().encode())
        with self.reading(name):
            return place.read_text(encoding="utf-8")

    def reading(self, name: str) -> AbstractContextManager[None]:
        """Refuse a file of the folder in one line where what it says cannot be taken up."""
        return nullcontext() if self.folder is None else refusing_damage(self.folder / name, remove=self.folder)

    def remove(self) -> None:
        """Remove the folder, when its result is delivered."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def working_in(folder: Path | str | Stages | None) -> Iterator[Stages]:
    """Open a work folder, made where it is not there, for one process at a time; None keeps nothing."""
    if folder is None or isinstance(folder, Stages):
        yield folder or Stages()
        return
    place = Path(folder)
    check_folder(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(place, error) from error
    with only_driver(place, f"the rightsizing in {place} is being done by another process"):
        yield Stages(place)


def _tensors_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield weights, and the numbers of refits, by name."""
    yield from ((f"weights/{name}", value) for name, value in model.state_dict().items())
    for number, (_, numbers) in enumerate(plan_of(model).steps()):
        yield from ((f"numbers/{number}/{name}", value) for name, value in numbers.items())


def _network_record(made: MadeNetwork) -> JsonObject:
    card = card_of(made.model)
    return {
        "card": make_header(card, Plan(), {}).to_text(),
        "bits": card.bits,
        "plan": plan_of(made.model).to_record(),
        "reasons": list(made.reasons),
        "histories": [history.to_json() for history in made.histories],
        "lineage": None if made.lineage is None else made.lineage.to_record(),
    }


def _read_network(record: JsonObject, tensors: Mapping[str, Tensor], base: nn.Module) -> MadeNetwork:
    known, plan = plan_of(base), Plan.from_record(record["plan"])
    model = rebuild(Plan(plan.edits[len(known) :], plan.example), base)
    weights = under("weights/", tensors)
    for name, tensor in model.state_dict(keep_vars=True).items():
        if (weights[name].shape, weights[name].dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(f"{name} does not fit its network")
        tensor.data = weights[name].to(tensor.device)
    numbers = tuple(under(f"numbers/{number}/", tensors) for number in range(len(plan)))
    attach_plan(model, Plan(plan.edits, plan.example, numbers))
    attach(model, replace(parse_header(record["card"]).card(), bits=record["bits"]))
    return MadeNetwork(
        model.eval(),
        tuple(record["reasons"]),
        tuple(map(History.from_json, record["histories"])),
        None if record["lineage"] is None else Lineage.from_record(record["lineage"]),
    )


def data_digest(data: Data) -> str:
    """Return a hash of what is predicted, and of all samples."""
    found = hashlib.sha256(canonical_json([data.name, list(data.input_shape), data.task.to_record()]).encode())
    for part in (data.train, data.validation, data.test):
        if not isinstance(part, Part):
            continue
        if isinstance(part.samples, LazySamples):  # as they are in the file: prepared, they may not fit in memory
            for content in part.samples.contents():
                found.update(content)
        held = (part.samples, part.y, part.weights)
        _add(found, [tensor for tensor in held if isinstance(tensor, Tensor)])
    return found.hexdigest()


def network_digest(model: nn.Module) -> str:
    """Return a hash of a network's structure and weights."""
    found = hashlib.sha256(str(model).encode())
    _add(found, list(model.state_dict().values()))
    return found.hexdigest()


def _add(digest: "hashlib._Hash", tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)  # without a copy
