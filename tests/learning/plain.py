"""PPO written down plainly, in doubles, without rsl_rl."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from horizon_rl.learning import Ppo, PpoCfg


def log_prob(action: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    z = (action - mean) / std
    return (-0.5 * z**2 - std.log() - 0.5 * math.log(2 * math.pi)).sum(-1)


def plain_loss(
    mean: Tensor, std: Tensor, value: Tensor, batch: dict[str, Tensor], cfg: PpoCfg
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss by the book, its terms, and the KL divergence."""
    ratio = (log_prob(batch["actions"], mean, std) - batch["log_prob"]).exp()
    clipped = ratio.clamp(1 - cfg.clip, 1 + cfg.clip)
    gain = torch.minimum(ratio * batch["advantages"], clipped * batch["advantages"])
    change = (value - batch["values"]).clamp(-cfg.clip, cfg.clip)
    error = (value - batch["returns"]) ** 2
    clipped_error = (batch["values"] + change - batch["returns"]) ** 2
    value_loss = torch.maximum(error, clipped_error).mean()
    entropy = (0.5 + 0.5 * math.log(2 * math.pi) + std.log()).sum()
    old_mean, old_std = batch["mean"], batch["std"]
    spread = (old_std**2 + (old_mean - mean) ** 2) / (2 * std**2)
    kl = ((std / old_std).log() + spread - 0.5).sum(-1).mean()
    loss = -gain.mean() + cfg.value_coef * value_loss - cfg.entropy_coef * entropy
    terms = {"surrogate": -gain.mean(), "value_loss": value_loss}
    return loss, {**terms, "entropy": entropy, "kl": kl}


def plain_batch(storage) -> dict[str, Tensor]:
    """Return the rollout's columns [T, n], without their trailing one."""
    mean, std = storage.distribution_params
    return {
        "actions": storage.actions,
        "log_prob": storage.actions_log_prob[..., 0],
        "values": storage.values[..., 0],
        "returns": storage.returns[..., 0],
        "advantages": storage.advantages[..., 0],
        "mean": mean,
        "std": std,
    }


class PlainMlps:
    """An MLP actor and its critic as dictionaries of doubles, with Adam's moments."""

    def __init__(self, learner: Ppo, num_steps: int):
        """Copy them; `num_steps` is how many steps Adam has taken before."""
        self.num_steps = num_steps
        self.weights: dict[str, Tensor] = {}
        self.moments: dict[str, list[Tensor]] = {}
        self.scales: dict[str, tuple[Tensor, Tensor]] = {}
        for prefix, model in learner.models.items():
            normalizer: Any = model.obs_normalizer
            self.scales[prefix] = normalizer.mean, normalizer.std + 1e-2
            for key, param in model.named_parameters():
                optimizer = learner.gradient_steps.optimizer
                state, name = optimizer.state[param], f"{prefix}.{key}"
                self.weights[name] = param.detach().double().clone().requires_grad_()
                self.moments[name] = [
                    state[key].double().clone() for key in ("exp_avg", "exp_avg_sq")
                ]

    def mean(self, obs) -> Tensor:
        return self._mlp("actor", self._normalised("actor", obs))

    def value(self, obs) -> Tensor:
        code = gelu(self._linear("critic.encoder.0", obs["privileged"].double()))
        seen = self._normalised("critic", obs)
        return self._mlp("critic", torch.cat((seen, code), dim=1))[:, 0]

    def descend(self, loss: Tensor, rate: float, max_norm: float) -> None:
        """Clip each model's gradient, then take one step of Adam."""
        found = torch.autograd.grad(loss, list(self.weights.values()))
        gradients = dict(zip(self.weights, found, strict=True))
        self.num_steps += 1
        for model in ("actor", "critic"):
            names = [name for name in gradients if name.startswith(model)]
            norm = math.sqrt(sum(float((gradients[n] ** 2).sum()) for n in names))
            for name in names:
                gradient = gradients[name] * min(1.0, max_norm / (norm + 1e-6))
                m, v = self.moments[name]
                m.mul_(0.9).add_(0.1 * gradient)
                v.mul_(0.999).add_(0.001 * gradient**2)
                m_hat = m / (1 - 0.9**self.num_steps)
                v_hat = v / (1 - 0.999**self.num_steps)
                self.weights[name].data -= rate * m_hat / (v_hat.sqrt() + 1e-8)

    def _normalised(self, name: str, obs) -> Tensor:
        mean, scale = self.scales[name]
        return (obs[name].double() - mean) / scale

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _mlp(self, name: str, x: Tensor) -> Tensor:
        x = gelu(self._linear(f"{name}.mlp.0", x))
        x = gelu(self._linear(f"{name}.mlp.2", x))
        return self._linear(f"{name}.mlp.4", x)


def plain_update(learner: Ppo, nets: PlainMlps) -> tuple[float, list[dict[str, float]]]:
    """Update the nets from the learner's rollout; return the rate and all terms."""
    cfg, storage = learner.cfg, learner.storage
    obs = storage.observations.flatten(0, 1)
    columns = plain_batch(storage)
    columns = {name: value.flatten(0, 1).double() for name, value in columns.items()}
    rate, table = learner.learning_rate, []
    order = torch.randperm(len(obs))
    for _ in range(cfg.num_epochs):
        for ids in order.split(len(obs) // cfg.num_minibatches):
            batch = {name: value[ids] for name, value in columns.items()}
            std = nets.weights["actor.distribution.std_param"]
            loss, terms = plain_loss(
                nets.mean(obs[ids]), std, nets.value(obs[ids]), batch, cfg
            )
            table.append({name: value.item() for name, value in terms.items()})
            kl = table[-1]["kl"]
            if kl > 2 * cfg.target_kl:
                rate = max(cfg.min_learning_rate, rate / 1.5)
            elif 1e-7 < kl < cfg.target_kl / 2:  # In singles, less than that is 0.
                rate = min(cfg.max_learning_rate, rate * 1.5)
            nets.descend(loss, rate, cfg.max_grad_norm)
    return rate, table
