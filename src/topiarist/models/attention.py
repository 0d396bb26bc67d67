"""Attention whose heads, dims of heads and width are free of each other, in the place of torch's.

`nn.MultiheadAttention` computes with one `embed_dim` for the width that it reads and for all heads together. This one
has the same parameters by the same names, computes the same, and takes its sizes from numbers of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.MultiheadAttention):
    """Multi-head attention with sizes of its own: `num_heads`, `head_dim` of queries and keys, `value_dim` of values.

    `scale` is what products of queries and keys are multiplied with; it stays when dims go.
    """

    value_dim: int
    scale: float

    @classmethod
    def in_place_of(cls, module: nn.MultiheadAttention) -> "Attention":
        """Return attention with the parameters of torch's, which it shares."""
        made = cls.__new__(cls)
        vars(made).update(vars(module))
        for name in ("_parameters", "_modules", "_buffers"):
            vars(made)[name] = vars(module)[name].copy()
        made.value_dim = module.head_dim
        made.scale = float(module.head_dim) ** -0.5
        made._qkv_same_embed_dim = False  # torch's encoder layers then leave it alone
        return made

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return what torch's attention does: the result, and the weights where they are asked for."""
        single = query.dim() == 2
        if single:
            query, key, value = (each.unsqueeze(0) for each in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        queries, keys, values = self._projected(query, key, value)
        mask = self._mask(queries, attn_mask, key_padding_mask, added=keys.size(1) - key.size(1))
        queries, keys, values = (
            each.view(each.size(0), each.size(1), self.num_heads, size).transpose(1, 2)
            for each, size in ((queries, self.head_dim), (keys, self.head_dim), (values, self.value_dim))
        )
        dropped = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            logits = (queries * self.scale) @ keys.transpose(-2, -1)
            weights = functional.softmax(logits if mask is None else logits + mask, dim=-1)
            weights = functional.dropout(weights, dropped)
            given = weights @ values
            weights = weights.mean(dim=1) if average_attn_weights else weights
        else:
            given = functional.scaled_dot_product_attention(
                queries, keys, values, attn_mask=mask, dropout_p=dropped, scale=self.scale
            )
        given = given.transpose(1, 2)
        result = self.out_proj(given.reshape(given.size(0), given.size(1), self.num_heads * self.value_dim))
        if single:
            return result.squeeze(0), None if weights is None else weights.squeeze(0)
        return result if self.batch_first else result.transpose(0, 1), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, before they are parted into heads."""
        sizes = [self.num_heads * self.head_dim, self.num_heads * self.head_dim, self.num_heads * self.value_dim]
        packed = self.in_proj_weight
        kernels = (
            torch.split(packed, sizes)
            if packed is not None
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases = (None, None, None) if self.in_proj_bias is None else torch.split(self.in_proj_bias, sizes)
        queries, keys, values = (
            functional.linear(each, kernel, bias)
            for each, kernel, bias in zip((query, key, value), kernels, biases, strict=True)
        )
        if self.bias_k is not None and self.bias_v is not None:
            keys = torch.cat([keys, self.bias_k.repeat(keys.size(0), 1, 1)], dim=1)
            values = torch.cat([values, self.bias_v.repeat(values.size(0), 1, 1)], dim=1)
        if self.add_zero_attn:
            keys = functional.pad(keys, (0, 0, 0, 1))
            values = functional.pad(values, (0, 0, 0, 1))
        return queries, keys, values

    def _mask(self, queries: Tensor, mask: Tensor | None, padding: Tensor | None, added: int) -> Tensor | None:
        """Return both masks as one that is added to the logits; what was added to the keys is seen by all."""
        if mask is not None:
            mask = _additive(mask, queries)
            mask = mask.unsqueeze(0) if mask.dim() == 2 else mask.view(-1, self.num_heads, *mask.shape[1:])
            mask = mask.unsqueeze(0) if mask.dim() == 3 else mask
        if padding is not None:
            hidden = _additive(padding, queries)[:, None, None, :]
            mask = hidden if mask is None else mask + hidden
        return mask if mask is None or not added else functional.pad(mask, (0, added))


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask that is added: where True stands for what is hidden, minus infinity."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -torch.inf)


def with_free_attention(model: nn.Module, paths: Any = None) -> list[str]:
    """Replace torch's attention in a network by one with sizes of its own, in place; return where it was replaced.

    `paths` names the modules to replace, all of them by default; subclasses with a forward of their own stay.
    """
    modules = list(model.named_modules(remove_duplicate=False))
    wanted = {module for path, module in modules if paths is None or path in paths}
    made: dict[nn.Module, Attention] = {}
    found = []
    for path, module in modules:
        plain = isinstance(module, nn.MultiheadAttention) and type(module).forward is nn.MultiheadAttention.forward
        if plain and path and module in wanted:
            above, _, name = path.rpartition(".")
            made[module] = made.get(module) or Attention.in_place_of(module)
            model.get_submodule(above)._modules[name] = made[module]
            found.append(path)
    for _, module in modules:
        if isinstance(module, nn.TransformerEncoder) and any(isinstance(each, Attention) for each in module.modules()):
            module.use_nested_tensor = False  # of sequences without their padding, which only torch's attention reads
    return found


@contextmanager
def free_attention(model: nn.Module) -> Iterator[None]:
    """Have attention with sizes of its own in the place of torch's inside the block, and put torch's back.

    Torch's reads the weights of its last layer and does not call it, so that hooks there see nothing.
    """
    modules = dict(model.named_modules(remove_duplicate=False))
    nested = [(each, each.use_nested_tensor) for each in modules.values() if isinstance(each, nn.TransformerEncoder)]
    paths = with_free_attention(model)
    try:
        yield
    finally:
        for encoder, used in nested:
            encoder.use_nested_tensor = used
        for path in paths:
            above, _, name = path.rpartition(".")
            parent = model.get_submodule(above)
            modules[path].training = parent.get_submodule(name).training
            parent._modules[name] = modules[path]
