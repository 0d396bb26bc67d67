"""What a model file may ask for: looked at before anything is built, on torch's device without memory.

A file of a kilobyte can name a network of gigabytes. One that was neither cut nor packed takes as much as the file
holds, or a few times that where it is stored in shorter numbers. One that was may have been larger, or hold zeros in
few bytes: it may take `FREE_BYTES`, and `MOST_TIMES` the file besides.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.models import build
from topiarist.models.card import Spec
from topiarist.surgery import Plan
from topiarist.surgery.edits import kinds

FREE_BYTES = 2**28  # 256 MB: more than any network that we train on a CPU takes
MOST_TIMES = 4096  # 8 bits per weight, one weight in a thousand kept; deflating zeros makes them 1,030 times shorter
WIDEST = 8  # float64 as float8
MOST_LAYERS = 10_000  # ten times the deepest networks that were published
MOST_MEMBERS, MOST_NESTING = 1000, 4  # of ensembles; the largest of the papers has 10, and none holds ensembles
MOST_EDITS = 10_000  # a Surgeon makes some hundreds


def check_request(spec: Spec, plan: Plan, tensors: Mapping[str, Tensor], *, packed: bool) -> None:
    """Raise ModelError where the network of a spec, or a plan's edits, ask for more than the file may ask for."""
    check_spec(spec)
    stored = sum(tensor.nbytes for tensor in tensors.values())
    plain = not packed and not plan.edits
    with torch.device("meta"):
        state = build(spec).state_dict()
    needed = sum(tensor.nbytes for tensor in state.values())
    most = FREE_BYTES // 2**8 + WIDEST * stored if plain else FREE_BYTES + MOST_TIMES * stored
    if needed > most:
        held = f"the file holds {stored:,} bytes of weights, which may become {most:,}"
        raise ModelError(f"its spec asks for a network of {needed:,} bytes; {held}")
    sizes = [size for tensor in state.values() for size in tensor.shape]
    check_edits(plan, max([1, *sizes]))


def check_spec(spec: Spec, nesting: int = 0) -> None:
    """Raise ModelError for a spec of too many layers or members, before any is built."""
    members = spec.get("members", ())
    if isinstance(members, list) and members:
        if len(members) > MOST_MEMBERS or nesting > MOST_NESTING:
            limits = f"at most {MOST_MEMBERS:,} members, {MOST_NESTING} ensembles deep, are read"
            raise ModelError(f"its spec has an ensemble of {len(members):,} members at depth {nesting}; {limits}")
        for member in members:
            if not isinstance(member, dict):
                raise ModelError("the file is damaged: a member of its ensemble is no spec")
            check_spec(member, nesting + 1)
    sizes = spec.get("sizes", ())
    counts = [spec[name] for name in "abcdpqr" if isinstance(spec.get(name), int)]
    layers = sum(counts) + (len(sizes) if isinstance(sizes, list) else 0)
    if layers > MOST_LAYERS:
        raise ModelError(f"its spec has {layers:,} layers; at most {MOST_LAYERS:,} are read")


def check_edits(plan: Plan, largest: int) -> None:
    """Raise ModelError for too many edits, or for one that makes a layer far wider than the network's widest."""
    if len(plan.edits) > MOST_EDITS:
        raise ModelError(f"it has {len(plan.edits):,} edits; at most {MOST_EDITS:,} are replayed")
    most = max(largest, 1000) * 10  # the Surgeon at most doubles a layer, a few times over
    for edit in plan.edits:
        asked = {"by": 0, "to": 0, "rank": 0} | dict(edit)
        if isinstance(edit, kinds.WidenSpace | kinds.GrowSpace | kinds.ProjectSpace | kinds.FactoriseLayer):
            units = max(asked["by"], asked["to"], asked["rank"])
            if units > most:
                raise ModelError(f"its edit '{edit.kind}' asks for {units:,} units; at most {most:,} are made")
