"""Changes values in JSON at random: another kind, a limit, or a piece of another place; keys lost or doubled."""

import copy
import random  # noqa: TID251  # generators that are given, no global state
from typing import Any

NUMBERS = [0, -1, 1, 2, 0.5, 1e308, -1e308, float("nan"), float("inf"), 2**31, 2**63, 10**400, -(2**63)]
OTHERS: list[Any] = [None, True, False, "", "x", "=1+2", "\0", "\x1b[2J", "é" * 300, [], {}, [[]], [None], {"": None}]
NAMES = ["relu", "mlp", "vgg", "zscore", "number", "text", "remove", "float32", "hidden0", "iris", "classes"]
CHANGES = [1, 1, 1, 2, 4]  # most files have one: what is wrong with it is then found, not what came before
DEEP = 3000  # lists in lists: beyond Python's recursion limit


def changed(tree: Any, draw: random.Random) -> Any:
    """Return a tree of lists, objects and values with one change or several."""
    found = copy.deepcopy(tree)
    for _ in range(draw.choice(CHANGES)):
        places = list(_places(found))
        if not places:
            return _value(None, draw)
        holder, key = draw.choice(places)
        match draw.randrange(6):
            case 0 if isinstance(holder, dict):
                holder[draw.choice([f"{key}_", "", *NAMES])] = holder[key]
            case 1:
                del holder[key]
            case 2 if isinstance(holder, list):
                holder[key:key] = [copy.deepcopy(holder[key])] * draw.choice([1, 2, 50])
            case 3:
                other, place = draw.choice(places)
                if place in other if isinstance(other, dict) else place < len(other):
                    holder[key] = copy.deepcopy(other[place])
            case _:
                holder[key] = _value(holder[key], draw)
    return found


def _places(tree: Any) -> Any:
    """Yield every list and object of a tree with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _value(old: Any, draw: random.Random) -> Any:
    if isinstance(old, bool) or draw.random() < 0.3:
        return draw.choice([*OTHERS, *NAMES, *NUMBERS])
    if isinstance(old, int):
        return draw.choice(
            [*NUMBERS, old + 1, old - 1, -old, old * 1000, old / 2 if abs(old) < 2**63 else 0.5, f"{old:x}"]
        )
    if isinstance(old, float):
        return draw.choice([*NUMBERS, -old, int(old) if abs(old) < 1e300 and old == old else 0, str(old)])
    if isinstance(old, str):
        return draw.choice([*NAMES, old[:-1], old + old, old.upper(), *OTHERS])
    if isinstance(old, list):
        return draw.choice([old[:-1], old * 2, old[::-1], old * 200, {}, None])
    return draw.choice([*OTHERS, *NUMBERS])


def deep(draw: random.Random) -> str:
    """Return JSON of lists or objects that are nested too deep to be read by calls within calls."""
    opened, closed = draw.choice([("[", "]"), ('{"a":', "}")])
    return opened * DEEP + "1" + closed * DEEP
