"""Rewards, advantage and loss: Algorithm 1, lines 13 to 16."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed
from torch import Tensor


class Signal(NamedTuple):
    """What a batch of rollouts teaches."""

    best: Tensor  #: (B,) int64 k*, the rollout with the highest reward
    advantage: Tensor  #: (B,) float32 of that rollout
    reward: Tensor  #: (B,) float64 its reward
    mean: Tensor  #: (B,) float64 reward of all rollouts


def signal(change: Tensor, *, scale: bool) -> Signal:
    """From the change of cost (B, K) that each rollout brought. Rewards are max(old - new, 0).

    The advantage is r_k* - b, the baseline b being the mean reward of the solution's K rollouts. Scaled, it is divided
    by the mean of r_k* over the batch (over all processes): solutions near their optimum yield small rewards, and
    gradients should not fade as training gets there.
    """
    rewards = (-change).clamp(min=0.0).double()
    reward, best = rewards.max(dim=1)
    mean = rewards.mean(dim=1)
    advantage = reward - mean
    if scale:
        whole = over_processes(reward.mean())
        advantage = advantage / (whole + (whole == 0))  # nothing was improved: all are 0, and nobody has to look
    return Signal(best, advantage.float(), reward, mean)


def loss_of(log_probability: Tensor, advantage: Tensor) -> Tensor:
    """REINFORCE through the best rollout alone: -(1/B) sum of advantage x log pi. Both (B,)."""
    return -(advantage * log_probability).mean()


def over_processes(value: Tensor) -> Tensor:
    """The mean of a number over all processes, which hold equal shares of the batch."""
    if torch.distributed.is_initialized():
        value = value.clone()
        torch.distributed.all_reduce(value)
        value = value / torch.distributed.get_world_size()
    return value
