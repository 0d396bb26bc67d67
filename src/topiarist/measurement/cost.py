"""The arithmetic of a network: multiply-accumulates for one sample.

Counted where torch dispatches its matrix products and convolutions, so that whatever calls them is seen: layers,
functions, `@`, `einsum`; fused kernels, as those of attention and recurrent layers, are switched off meanwhile.
Torch's own flop counter, the oracle in the tests, would load the compiler, which takes longer than all the rest.
Padding counts as input; biases, norms, activations and pooling do not count.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from topiarist.errors import ModelError, TopiaristError, first_line
from topiarist.models.evaluation import evaluating
from topiarist.tracing import Inputs
from topiarist.tracing.multiplications import MADE_OF_OTHERS, MULTIPLICATIONS
from topiarist.tracing.running import arguments, call, plain_kernels

aten = torch.ops.aten


def count_macs(model: nn.Module, example: Inputs) -> int:
    """Return the multiply-accumulates for an example input of one sample, such as a tensor (1, *input_shape)."""
    counter = Counter()
    run = runner(model, example)
    with evaluating(model), plain_kernels(model), counter:
        run()
    return counter.macs


def runner(model: nn.Module, example: Inputs) -> Callable[[], object]:
    """Return a function that calls a network on an example; whatever its forward raises becomes one line."""
    own = callable(example) and not isinstance(example, Tensor)
    args, kwargs = ((), {}) if own else arguments(model, example)

    def run() -> object:
        try:
            return call(model, example) if own else model(*args, **kwargs)
        except TopiaristError:
            raise
        except Exception as error:  # whatever a user's forward raises
            reason = first_line(error)
            what = f"samples of shape {tuple(example.shape[1:])}" if isinstance(example, Tensor) else "the example"
            raise ModelError(f"the network cannot read {what}: {reason}") from error

    return run


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Adds up the products of every operation that has a rule."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.macs = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or the compiler is loaded, only to be told to stay away

    def __torch_dispatch__(
        self, operation: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the operation and count."""
        packet = operation.overloadpacket
        if packet in NOT_COUNTED:
            raise ModelError(f"the MACs of '{packet}' cannot be counted: it hides what it computes")
        if packet in MADE_OF_OTHERS:
            with self:
                return operation.decompose(*args, **(kwargs or {}))
        output = operation(*args, **(kwargs or {}))
        rule = MULTIPLICATIONS.get(packet)
        if rule is not None:
            self.macs += rule(output, *args)
        return output


NOT_COUNTED = (
    aten.mkldnn_rnn_layer,
    aten._cudnn_rnn,
    aten._native_multi_head_attention,
    aten._transformer_encoder_layer_fwd,
    aten._scaled_dot_product_flash_attention_for_cpu,
)
