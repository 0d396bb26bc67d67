"""What surgery cannot follow is an error that names it, or, with partial=True, fixes the units it touches."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from tests.networks import NormedNetwork
from tests.tracing.cutting import Makers, check_cuts, written
from topiarist.errors import ModelError
from topiarist.tracing import anatomy

IMAGES = (2, 3, 4, 4)
ROWS = (2, 4)
STEPS = (2, 3, 4)
HEAD: Makers = {"head": lambda: nn.Linear(6, 2)}
BEFORE: Makers = {"before": lambda: nn.Linear(4, 5), "wide": lambda: nn.Linear(5, 6), **HEAD}
CONVOLVED: Makers = {"before": lambda: nn.Conv2d(3, 5, 1), "wide": lambda: nn.Conv2d(5, 6, 1), **HEAD}

# what is refused: (code, shape, parts, message); space 'before' stays free and 'wide' is fixed
REFUSED: dict[str, tuple[Callable[[Any, Tensor], Any], tuple[int, ...], Makers, str]] = {
    "lstm": (
        lambda net, x: net.head(net.memory(net.wide(net.before(x)))[0]),
        STEPS,
        {**BEFORE, "memory": lambda: nn.LSTM(6, 6, batch_first=True)},
        r"'memory' \(LSTM\): no rule for this kind of layer",
    ),
    "attention": (
        lambda net, x: net.head(net.attention(*[net.wide(net.before(x))] * 3)[0]),
        STEPS,
        {**BEFORE, "attention": lambda: nn.MultiheadAttention(6, 2, batch_first=True)},
        r"'attention' \(MultiheadAttention\): no rule for this kind of layer",
    ),
    "pixel shuffle": (
        lambda net, x: net.last(net.shuffle(net.wide(net.before(x)))),
        IMAGES,
        {
            **CONVOLVED,
            "wide": lambda: nn.Conv2d(5, 8, 1),
            "shuffle": lambda: nn.PixelShuffle(2),
            "last": lambda: nn.Conv2d(2, 2, 1),
        },
        r"'shuffle' \(PixelShuffle\): no rule for this kind of layer",
    ),
    "transposed convolution": (
        lambda net, x: net.last(net.up(net.wide(net.before(x)))),
        IMAGES,
        {**CONVOLVED, "up": lambda: nn.ConvTranspose2d(6, 4, 2), "last": lambda: nn.Conv2d(4, 2, 1)},
        r"'up' \(ConvTranspose2d\): transposed and three-dimensional convolutions are out of scope",
    ),
    "written size": (
        lambda net, x: net.head(net.wide(net.before(x)).view(x.size(0), 6, 16).mean(-1)),
        IMAGES,
        CONVOLVED,
        r"the network's forward \(view\): its code says 6, which a cut makes wrong: use -1, flatten\(1\) or x.shape",
    ),
    "written flat size": (
        lambda net, x: net.flat(net.wide(net.before(x)).reshape(-1, 96)),
        IMAGES,
        {**CONVOLVED, "flat": lambda: nn.Linear(96, 2)},
        r"the network's forward \(reshape\): its code says 96, which .*",
    ),
    "split units": (
        lambda net, x: net.head(net.wide(net.before(x)).view(x.size(0), 2, -1).flatten(1)),
        ROWS,
        BEFORE,
        r"the network's forward \(view\): it turns \(2, 6\) into \(2, 2, 3\), which splits or mixes the units",
    ),
    "matrix product": (
        lambda net, x: net.head(net.wide(net.before(x)) @ net.matrix),
        ROWS,
        {**BEFORE, "matrix": lambda: nn.Parameter(torch.rand(6, 6))},
        r"the network's forward \(matmul\): no rule for this function",
    ),
    "some of the units": (
        lambda net, x: net.last(net.wide(net.before(x))[:, :4]),
        ROWS,
        {**BEFORE, "last": lambda: nn.Linear(4, 2)},
        r"the network's forward \(getitem\): it takes slice\(None, 4, None\) of the units",
    ),
    "channels last flattened": (
        lambda net, x: net.flat(net.wide(net.before(x)).permute(0, 2, 3, 1).flatten(1)),
        IMAGES,
        {**CONVOLVED, "flat": lambda: nn.Linear(96, 2)},
        r"the network's forward \(flatten\): it flattens what lies before the units",
    ),
    "uneven pieces": (
        lambda net, x: net.last(net.wide(net.before(x)).chunk(4, dim=1)[0]),
        ROWS,
        {**BEFORE, "last": lambda: nn.Linear(2, 2)},
        r"the network's forward \(chunk\): 6 units do not fall into 4 equal pieces",
    ),
    "mixing along another axis": (
        lambda net, x: net.head(net.mixer(net.wide(net.before(x)).transpose(1, 2)).transpose(1, 2)),
        STEPS,
        {**BEFORE, "mixer": lambda: nn.Linear(3, 3)},
        r"'mixer' \(Linear\): it works along axis -1, but the units lie along axis -2",
    ),
    "outer product": (
        lambda net, x: net.head((net.wide(net.before(x)).unsqueeze(2) * net.other(x).unsqueeze(1)).sum(2)),
        ROWS,
        {**BEFORE, "other": lambda: nn.Linear(4, 5)},
        r"the network's forward \(mul\): its operands have their units along different axes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    code, shape, parts, message = REFUSED[name]
    model, example = written(code, shape, parts)
    with pytest.raises(ModelError, match=f"^surgery cannot follow {message}; partial=True leaves its units alone$"):
        anatomy(model, example)


@pytest.mark.parametrize("name", REFUSED)
def test_partial_fixes_what_is_refused_and_leaves_the_rest_free(name: str) -> None:
    code, shape, parts, message = REFUSED[name]
    model, example = written(code, shape, parts)
    found = anatomy(model, example, partial=True)
    operation = message.split(r"\(")[1].split(r"\)")[0]
    assert found["before"].size == 5
    assert not found["before"].fixed
    assert found["wide"].reason == f"'{operation}' is not understood"
    assert len(found.opaque) == 1
    assert f"not understood: {found.opaque[0]}" in " ".join(str(found).split("\n"))
    check_cuts(model, example, found)


def test_control_flow_that_depends_on_the_data() -> None:
    class Deciding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            given: Tensor = self.layer(x)
            return given if x.sum() > 0 else -given

    message = r"\(Deciding\): symbolically traced variables cannot be used as inputs to control flow$"
    with pytest.raises(ModelError, match=r"^cannot trace the network's forward " + message):
        anatomy(Deciding(), torch.zeros(2, 4))
    inside = nn.Sequential(nn.Linear(4, 4), Deciding())
    with pytest.raises(ModelError, match=r"^cannot trace '1' " + message):
        anatomy(inside, torch.zeros(2, 4))


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(4, 5)
        self.wide = nn.Linear(5, 6)
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(self.second(self.first(self.wide(self.before(x)))))
        return given


class Parametrised(Tied):
    """A layer whose weight is computed from others."""

    def __init__(self) -> None:
        super().__init__()
        self.first = parametrizations.weight_norm(nn.Linear(6, 6))
        self.second = nn.Linear(6, 6)


@pytest.mark.parametrize(("make", "kind"), [(Tied, "Linear"), (Parametrised, "ParametrizedLinear")])
def test_weights_of_two_layers_and_computed_weights(make: type[Tied], kind: str) -> None:
    message = (
        rf"^surgery cannot follow 'first' \({kind}\): its parameters are shared with another layer, or computed .*"
    )
    with pytest.raises(ModelError, match=message):
        anatomy(make(), torch.zeros(2, 4))
    found = anatomy(make(), torch.zeros(2, 4), partial=True)
    assert not found["before"].fixed
    assert found["wide"].reason == f"'{kind}' is not understood"
    assert found.opaque[0].startswith(f"'first' ({kind}): ")


@pytest.mark.parametrize("make", [Tied, Parametrised])
def test_partial_fixes_what_such_a_layer_writes(make: type[Tied]) -> None:
    assert "first" not in anatomy(make(), torch.zeros(2, 4), partial=True).free


def test_partial_changes_nothing_where_all_is_understood() -> None:
    model, example = NormedNetwork(), torch.zeros(2, 4)
    assert str(anatomy(model, example, partial=True)) == str(anatomy(model, example))


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("mean", lambda net, x: net.head(net.wide(x) - net.wide(x).mean(dim=1, keepdim=True))),
        ("sum", lambda net, x: net.head(net.wide(x) / net.wide(x).sum())),
        ("softmax", lambda net, x: net.head(torch.softmax(net.wide(x), dim=-1))),
        ("softmax", lambda net, x: net.head(net.wide(x).softmax(1))),
        ("normalize", lambda net, x: net.head(nn.functional.normalize(net.wide(x)))),
        ("logsumexp", lambda net, x: net.head(net.wide(x) - torch.logsumexp(net.wide(x), 1, keepdim=True))),
    ],
)
def test_what_mixes_all_units_fixes_them(operation: str, code: Callable[[Any, Tensor], Any]) -> None:
    found = anatomy(*written(code, ROWS, {"wide": lambda: nn.Linear(4, 6), **HEAD}))
    assert found["wide"].reason == f"'{operation}' is taken over them"
