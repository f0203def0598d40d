"""PPO's arithmetic, as functions of tensors."""

import torch
from torch import Tensor


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of values, with weights whose own mean over a rollout is 1."""
    return values.mean() if weights is None else (weights * values).mean()


def surrogate_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantage: Tensor,
    clip: float,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the clipped surrogate loss, and the share of ratios outside the range.

    Schulman et al. 2017, eq. 7. All tensors have the same shape; weights as in `weighted_mean`.
    """
    ratio = torch.exp(log_prob - old_log_prob)
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    loss = torch.maximum(-advantage * ratio, -advantage * clipped)
    clipped_ones = (ratio != clipped).float()
    return weighted_mean(loss, weights), weighted_mean(clipped_ones, weights)


def value_loss(
    value: Tensor,
    old_value: Tensor,
    returns: Tensor,
    clip: float | None,
    weights: Tensor | None = None,
) -> Tensor:
    """Return the squared error of values; with `clip`, of small changes only."""
    loss = (value - returns).square()
    if clip is not None:
        near = old_value + (value - old_value).clamp(-clip, clip)
        loss = torch.maximum(loss, (near - returns).square())
    return weighted_mean(loss, weights)


def adapted_rate(
    rate: Tensor, kl: Tensor, target: float, lowest: float, highest: Tensor
) -> Tensor:
    """Return the learning rate after a minibatch with this KL divergence.

    rsl_rl's rule: a factor 1.5 down above twice the target, up below half of it. A KL
    of 0 says nothing and one that is not a number compares with nothing: both leave the
    rate alone. No branch: the host need not know.
    """
    up, down = rate * 1.5, rate / 1.5
    rate = torch.where(kl > 2.0 * target, down, rate)
    rate = torch.where((kl < 0.5 * target) & (kl > 0.0), up, rate)
    return torch.minimum(rate.clamp(min=lowest), highest)


def fill_returns(
    returns: Tensor,
    rewards: Tensor,
    values: Tensor,
    dones: Tensor,
    last_values: Tensor,
    gamma: float,
    lam: float,
) -> None:
    """Write the returns of a rollout, by generalised advantage estimation.

    Schulman et al. 2016, eq. 16, plus the values. A step that is done is worth its
    reward alone: that of a timeout must contain what the critic expects. All arguments
    are [T, n, 1] but `last_values` [n, 1], those of what follows the last step.
    """
    advantage: Tensor | float = 0.0
    next_values = last_values
    for step in reversed(range(len(rewards))):
        goes_on = 1.0 - dones[step].float()
        delta = rewards[step] + goes_on * gamma * next_values - values[step]
        advantage = delta + goes_on * gamma * lam * advantage
        returns[step] = advantage + values[step]
        next_values = values[step]
