"""A small transformer that decodes one token per step, for one rank; and how several share it."""

import copy
from collections.abc import Callable

import symm.torch
import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, HEAD = 8192, 64
EPSILON = 1e-5


class AddNorm(nn.Module):
    """Adds x to the residual, and normalizes that. Several ranks first sum their x."""

    def __init__(self, hidden: int, sum_in_place: Callable[[Tensor], object] | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.sum_in_place = sum_in_place

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        if self.sum_in_place is not None:
            self.sum_in_place(x)
        residual = residual + x
        return functional.rms_norm(residual, self.weight.shape, self.weight, EPSILON), residual


class Layer(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)  # rows: head by head
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(4 * hidden, hidden, bias=False)
        self.after_attention, self.after_mlp = AddNorm(hidden), AddNorm(hidden)

    def forget(self, sequences: int, length: int):
        """Makes empty caches, for the heads that this rank has."""
        heads = self.qkv.weight.shape[0] // (3 * HEAD)
        self.keys, self.values = self.qkv.weight.new_zeros(2, sequences, heads, length, HEAD)

    def forward(self, y: Tensor, residual: Tensor, position: Tensor,
                past: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value = self.qkv(y).unflatten(-1, (-1, 3, 1, HEAD)).unbind(2)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        found = functional.scaled_dot_product_attention(query, self.keys, self.values, past)
        y, residual = self.after_attention(self.out(found.flatten(1)), residual)
        return self.after_mlp(self.down(functional.silu(self.up(y))), residual)


class Transformer(nn.Module):
    def __init__(self, layers: int, hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.layers = nn.ModuleList(Layer(hidden) for _ in range(layers))
        self.head = nn.Linear(hidden, VOCABULARY, bias=False)
        for layer in self.layers:  # large enough that tokens depend on each layer's sums
            for linear in layer.qkv, layer.out, layer.up, layer.down:
                nn.init.normal_(linear.weight, std=2 / linear.in_features ** 0.5)

    def forget(self, sequences: int, length: int):
        self.places = torch.arange(length, device=self.head.weight.device)
        for layer in self.layers:
            layer.forget(sequences, length)

    def forward(self, token: Tensor, position: Tensor) -> Tensor:
        """The most likely next token of each sequence."""
        past = (self.places <= position)[None]  # the keys that are there
        residual = self.embedding(token)
        y = functional.rms_norm(residual, residual.shape[-1:], eps=EPSILON)
        for layer in self.layers:
            y, residual = layer(y, residual, position, past)
        return self.head(y).argmax(-1)


def share(whole: Transformer, group: str, add_norm: Callable[[], nn.Module]) -> Transformer:
    """This rank's part of the transformer: its heads, and its columns of the MLP."""
    part = copy.deepcopy(whole)
    for layer in part.layers:
        layer.qkv = symm.torch.ColumnLinear(layer.qkv, group)
        layer.out = symm.torch.RowLinear(layer.out, group, partial=True)
        layer.up = symm.torch.ColumnLinear(layer.up, group)
        layer.down = symm.torch.RowLinear(layer.down, group, partial=True)
        for name in "after_attention", "after_mlp":
            norm = add_norm()
            norm.weight = getattr(layer, name).weight
            setattr(layer, name, norm)
    return part
