"""The layers of many networks of one shape, run and differentiated as one.

Activations are laid out features first, (n_members, n_features, n_samples): sums over samples and the softmax over few
classes then run along memory. Each layer has a forward that keeps what its backward needs, and a backward written out
that writes the gradients of its parameters and returns the slope of the loss in its input: on networks this small,
autograd's bookkeeping costs more than the arithmetic. Parameters and buffers are views (n_members, …).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Parameters = dict[str, Tensor]
Derivative = Callable[[nn.Module, Tensor, Tensor, Tensor], object]
aten = torch.ops.aten
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # α and λ of Klambauer and others (2017), as in torch


@dataclass(frozen=True)
class Pass:
    """What one pass over a batch needs to know.

    `rows` says how many samples of each member are real: the rest, at the end, are padding; `mask`
    (n_members, 1, n_samples) marks the real ones and is None where all are. `noise` has one generator per member.
    """

    training: bool
    rows: tuple[int, ...] = ()
    mask: Tensor | None = None
    noise: tuple[torch.Generator, ...] = ()


# Of so many samples and so few inputs, the product is made the other way round and then turned: ten layers 10–100 take
# 0.15 to 0.25 of the time with 128 to 500 samples, 20–64 0.25 to 0.35; 13–128 takes 1.2 times as long with 128, 0.25 of
# it with 256. Wider layers gain nothing, and smaller batches lose.
MANY_SAMPLES, FEW_INPUTS = 128, 64


class StackedLinear:
    """y = W x + b."""

    def __init__(self, parameters: Parameters, gradients: Parameters) -> None:
        self.weight, bias = parameters["weight"], parameters.get("bias")
        self.bias = None if bias is None else bias.unsqueeze(2)
        self.weight_gradient, self.bias_gradient = gradients["weight"], gradients.get("bias")
        self.weight_transposed = self.weight.mT
        # Where the stack holds a kernel transposed: its gradient is written along memory.
        self.gradient_transposed = None if self.weight_gradient.is_contiguous() else self.weight_gradient.mT
        self.lowest = False

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Multiply and add."""
        self.input = x
        return torch.bmm(self.weight, x) if self.bias is None else torch.baddbmm(self.bias, self.weight, x)

    def backward(self, slope: Tensor) -> Tensor:
        """dW = slope · xᵀ, db = Σ slope, dx = Wᵀ · slope (which nothing below the lowest layer needs)."""
        if self.gradient_transposed is None:
            torch.bmm(slope, self.input.mT, out=self.weight_gradient)
        elif slope.shape[2] >= MANY_SAMPLES and self.input.shape[1] <= FEW_INPUTS:
            self.weight_gradient.copy_(torch.bmm(slope, self.input.mT))
        else:
            torch.bmm(self.input, slope.mT, out=self.gradient_transposed)
        if self.bias_gradient is not None:
            torch.sum(slope, dim=2, out=self.bias_gradient)
        if self.lowest:
            return slope
        if slope.shape[1] == 1:  # of one output, as of a number: a product of columns and rows, four times as fast
            return self.weight_transposed * slope
        return torch.bmm(self.weight_transposed, slope)


class StackedActivation:
    """An elementwise activation; `derive(module, slope, input, output)` multiplies the slope by its derivative."""

    def __init__(self, module: nn.Module, *, in_place: bool) -> None:
        self.apply = IN_PLACE.get(type(module), module) if in_place else module
        self.module, self.derive = module, DERIVATIVES[type(module)]

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Apply it; in place where nobody else needs the input, which saves memory and time."""
        self.input = x
        output: Tensor = self.apply(x)
        self.output = output
        return output

    def backward(self, slope: Tensor) -> Tensor:
        """Chain rule."""
        self.derive(self.module, slope, self.input, self.output)
        return slope


class StackedDropout:
    """Inverted dropout; each member draws from its own generator just what it would draw alone."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Multiply by 0 or 1/(1 − p)."""
        self.factor = _draw_kept(x, run, self.rate).div_(1 - self.rate) if run.training and self.rate else None
        return x if self.factor is None else x * self.factor

    def backward(self, slope: Tensor) -> Tensor:
        """The same factor."""
        return slope if self.factor is None else slope.mul_(self.factor)


class StackedAlphaDropout(StackedDropout):
    """Dropout that keeps mean and variance of SELU activations: dropped units go to −λα, then an affine map."""

    saturation = -SELU_SCALE * SELU_ALPHA

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """a·(kept ? x : −λα) + b with a, b that restore mean 0 and variance 1."""
        self.factor = None
        if not (run.training and self.rate):
            return x
        rate, saturation = self.rate, self.saturation
        scale = (saturation**2 * rate + 1) ** -0.5 * (1 - rate) ** -0.5
        kept = _draw_kept(x, run, rate)
        self.factor = kept * scale
        shift = (1 - kept).mul_(saturation * scale).sub_(saturation * scale * rate)
        return x * self.factor + shift


class StackedBatchNorm:
    """Batch norm over the samples of each member; padding counts for nothing."""

    def __init__(
        self, module: nn.BatchNorm1d, parameters: Parameters, gradients: Parameters, buffers: Parameters
    ) -> None:
        self.epsilon, self.momentum = module.eps, float(module.momentum or 0)
        self.scale = parameters["weight"].unsqueeze(2) if parameters else None
        self.shift = parameters["bias"].unsqueeze(2) if parameters else None
        self.gradients, self.buffers = gradients, buffers

    def forward(self, x: Tensor, run: Pass) -> Tensor:
        """Standardise by the batch (training) or by the moving averages, then scale and shift."""
        if run.training:
            self.mask = run.mask
            self.count: Tensor | float = float(x.shape[2])
            if run.mask is not None:
                self.count = run.mask.sum(dim=2, keepdim=True).clamp(min=2)  # idle members have none, none has just one
            mean = self._mean(x)
            centred = x - mean
            variance = self._mean(centred.square())
            self._update_moving_averages(mean, variance)
        else:
            centred = x - self.buffers["running_mean"].unsqueeze(2)
            variance = self.buffers["running_var"].unsqueeze(2)
        self.inverse = (variance + self.epsilon).rsqrt()
        self.standard = centred.mul_(self.inverse)
        if self.scale is None or self.shift is None:
            return self.standard
        return torch.addcmul(self.shift, self.standard, self.scale)

    def backward(self, slope: Tensor) -> Tensor:
        """dx = scale · (slope − mean(slope) − x̂ · mean(slope · x̂)) / σ; the two means give the gradients as well."""
        along, total = (slope * self.standard).sum(dim=2), slope.sum(dim=2)
        if self.scale is not None:
            self.gradients["weight"].copy_(along)
            self.gradients["bias"].copy_(total)
        back = torch.addcmul(slope, self.standard, -(along.unsqueeze(2) / self.count))
        back.sub_(total.unsqueeze(2) / self.count)
        back.mul_(self.inverse if self.scale is None else self.inverse * self.scale)
        return back if self.mask is None else back.mul_(self.mask)

    def _mean(self, x: Tensor) -> Tensor:
        if self.mask is None:
            return x.mean(dim=2, keepdim=True)
        return (x * self.mask).sum(dim=2, keepdim=True) / self.count

    def _update_moving_averages(self, mean: Tensor, variance: Tensor) -> None:
        unbiased = variance * (self.count / (self.count - 1))
        moving = 1 if self.mask is None else self.mask.amax(dim=2)  # 0 for a member with no row in this batch
        for name, value in (("running_mean", mean), ("running_var", unbiased)):
            average = self.buffers[name]
            average.add_((value.squeeze(2) - average).mul_(self.momentum * moving))
        self.buffers["num_batches_tracked"].add_(1 if self.mask is None else self.mask.amax(dim=(1, 2)).long())


StackedLayer = StackedLinear | StackedActivation | StackedDropout | StackedBatchNorm


def _draw_kept(x: Tensor, run: Pass, rate: float) -> Tensor:
    """Draw 1 (kept) or 0 for each unit and sample, in the order in which a single network draws: sample by sample."""
    kept = torch.zeros(x.transpose(1, 2).shape, dtype=x.dtype)  # on the CPU, as the generators are
    for drawn, rows, generator in zip(kept, run.rows, run.noise, strict=True):
        if rows:
            drawn[:rows].bernoulli_(1 - rate, generator=generator)
    return kept.to(x.device).transpose(1, 2).contiguous()


# (module, slope, input, output): the slope of the output becomes that of the input, by torch's own backward operators.
DERIVATIVES: dict[type[nn.Module], Derivative] = {
    nn.Sigmoid: lambda module, slope, x, y: aten.sigmoid_backward.grad_input(slope, y, grad_input=slope),
    nn.Tanh: lambda module, slope, x, y: aten.tanh_backward.grad_input(slope, y, grad_input=slope),
    nn.ReLU: lambda module, slope, x, y: aten.threshold_backward.grad_input(slope, y, 0, grad_input=slope),
    nn.LeakyReLU: lambda module, slope, x, y: aten.leaky_relu_backward.grad_input(
        slope, x, module.negative_slope, False, grad_input=slope
    ),
    nn.ELU: lambda module, slope, x, y: aten.elu_backward.grad_input(
        slope, module.alpha, 1, 1, False, x, grad_input=slope
    ),
    nn.SELU: lambda module, slope, x, y: aten.elu_backward.grad_input(
        slope, SELU_ALPHA, SELU_SCALE, 1, False, x, grad_input=slope
    ),
    nn.GELU: lambda module, slope, x, y: aten.gelu_backward.grad_input(
        slope, x, approximate=module.approximate, grad_input=slope
    ),
    nn.SiLU: lambda module, slope, x, y: aten.silu_backward.grad_input(slope, x, grad_input=slope),
}

# Those whose derivative follows from the output alone.
IN_PLACE: dict[type[nn.Module], Callable[[Tensor], Tensor]] = {
    nn.Sigmoid: torch.sigmoid_,
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
}
