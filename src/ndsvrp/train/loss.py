"""Rewards, advantage and loss: Algorithm 1, lines 13 to 16."""

from typing import NamedTuple

import torch
import torch.distributed
from torch import Tensor


class Signal(NamedTuple):
    """Rewards and advantages of a batch of rollouts."""

    best: Tensor  #: (B,) int64 k*, the rollout with the highest reward
    advantage: Tensor  #: (B,) float32 of that rollout
    reward: Tensor  #: (B,) float64 its reward
    mean: Tensor  #: (B,) float64 reward of all rollouts


def signal(change: Tensor, *, scale: bool) -> Signal:
    """Return rewards and advantages for the (B, K) change of cost by each rollout. Rewards are max(old - new, 0).

    The advantage is r_k* - b; the baseline b is the mean reward of the solution's K rollouts. If scaled, it is divided
    by the mean of r_k* over the batch (over all processes): solutions near their optimum give small rewards, which must
    not make the gradients vanish.
    """
    rewards = (-change).clamp(min=0.0).double()
    reward, best = rewards.max(dim=1)
    mean = rewards.mean(dim=1)
    advantage = reward - mean
    if scale:
        whole = over_processes(reward.mean())
        advantage = advantage / (whole + (whole == 0))  # if no rollout improves, all advantages are 0
    return Signal(best, advantage.float(), reward, mean)


def loss_of(log_probability: Tensor, advantage: Tensor) -> Tensor:
    """Return the loss of REINFORCE for the best rollouts: -(1/B) sum of advantage x log pi. Both are (B,)."""
    return -(advantage * log_probability).mean()


def over_processes(value: Tensor) -> Tensor:
    """Return the mean of a number over all processes. Their shares of the batch are equal."""
    if torch.distributed.is_initialized():
        value = value.clone()
        torch.distributed.all_reduce(value)
        value = value / torch.distributed.get_world_size()
    return value
