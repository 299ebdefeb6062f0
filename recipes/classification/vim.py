"""Vision Mamba: blocks of two selective scans over the patches of a picture, one in each direction, in plain torch.

After Zhu et al., *Vision Mamba* (2024), and Gu and Dao, *Mamba* (2023): the class token in the middle, bidirectional blocks,
state spaces whose step, input and output depend on the token. Small, and for the CPU too; not their CUDA kernels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Scan(torch.autograd.Function):
    """h_t = decay_t * h_{t-1} + inputs_t along dimension 1, with h_{-1} = 0.

    In place and step by step, and its gradient the same way backwards: faster on a CPU than log2(length) passes over everything.
    """

    @staticmethod
    def forward(context, decay: Tensor, inputs: Tensor) -> Tensor:
        hidden = inputs.clone()
        for t in range(1, hidden.shape[1]):
            hidden[:, t].addcmul_(decay[:, t], hidden[:, t - 1])
        context.save_for_backward(decay, hidden)
        return hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context, gradient: Tensor) -> tuple[Tensor, Tensor]:
        decay, hidden = context.saved_tensors
        by_inputs = gradient.clone()
        for t in range(hidden.shape[1] - 2, -1, -1):
            by_inputs[:, t].addcmul_(decay[:, t + 1], by_inputs[:, t + 1])
        by_decay = torch.zeros_like(decay)
        torch.mul(by_inputs[:, 1:], hidden[:, :-1], out=by_decay[:, 1:])
        return by_decay, by_inputs


class SelectiveScan(nn.Module):
    """A causal convolution and a state space over [batch, tokens, width]."""

    def __init__(self, width: int, states: int = 16, kernel: int = 4) -> None:
        super().__init__()
        self.rank = max(1, width // 16)
        self.states = states
        self.kernel = kernel
        self.convolution = nn.Conv1d(width, width, kernel, groups=width, padding=kernel - 1)
        self.select = nn.Linear(width, self.rank + 2 * states, bias=False)
        self.step = nn.Linear(self.rank, width)
        self.log_rate = nn.Parameter(torch.arange(1.0, states + 1).log()[:, None].repeat(1, width))
        self.skip = nn.Parameter(torch.ones(width))
        # Steps between 0.001 and 0.1 at the start, as in Mamba.
        steps = torch.exp(torch.empty(width).uniform_(-6.9, -2.3))
        self.step.bias.data.copy_(steps + torch.log(-torch.expm1(-steps)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.convolution(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        rank, inputs, outputs = self.select(x).split([self.rank, self.states, self.states], dim=-1)
        step = F.softplus(self.step(rank))
        decay = torch.exp(-step[:, :, None] * self.log_rate.exp())  # [batch, tokens, states, width]
        hidden = Scan.apply(decay, (step * x)[:, :, None] * inputs[..., None])
        return (hidden * outputs[..., None]).sum(2) + x * self.skip


class Block(nn.Module):
    """Both directions, gated, with a residual."""

    def __init__(self, width: int, states: int = 16) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 4 * width)
        self.forwards = SelectiveScan(2 * width, states)
        self.backwards = SelectiveScan(2 * width, states)
        self.leave = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        inner, gate = self.enter(self.norm(x)).chunk(2, dim=-1)
        both = self.forwards(inner) + self.backwards(inner.flip(1)).flip(1)
        return x + self.leave(both * F.silu(gate))


class Vim(nn.Module):
    """A classifier of pictures of size x size."""

    def __init__(
        self,
        num_classes: int,
        channels: int = 3,
        size: int = 32,
        *,
        patch: int = 4,
        width: int = 192,
        depth: int = 24,
        states: int = 16,
    ) -> None:
        super().__init__()
        self.middle = (size // patch) ** 2 // 2
        self.embed = nn.Conv2d(channels, width, patch, stride=patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, states) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        token = self.token.expand(len(x), -1, -1)
        x = torch.cat([x[:, : self.middle], token, x[:, self.middle :]], dim=1) + self.position
        return self.head(self.norm(self.blocks(x)[:, self.middle]))
