"""Gradient steps on the minibatches of a rollout, which stay on the device until the last.

What is minimised is a subclass's: PPO's loss, labels of teachers, GRAM's three.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from horizon_rl.learning.losses import adapted_rate
from horizon_rl.learning.storage import Minibatch, SequenceStorage
from horizon_rl.support.graphs import Recorded, compiled
from horizon_rl.support.ranks import Ranks


def trained(model: nn.Module) -> list[nn.Parameter]:
    """Return a model's parameters that may change."""
    return [param for param in model.parameters() if param.requires_grad]


class GuardedAdam(torch.optim.Adam):
    """Fused Adam that leaves everything as it is while `found_inf` is 1.

    `found_inf` is how torch's gradient scaler tells the fused kernel to skip a step:
    the kernel reads it on the device. The rate is a tensor for the same reason.
    """

    found_inf: Tensor

    def __init__(self, models: Mapping[str, nn.Module], lr: float, device: str):
        """Optimise the parameters of models, known by name, that may change."""
        self._models = models
        params = list(chain.from_iterable(map(trained, models.values())))
        # A CUDA graph may record a step; torch's warning is for when none does.
        on_gpu = torch.device(device).type == "cuda"
        rate = torch.tensor(lr, device=device)
        super().__init__(params, lr=rate, fused=True, capturable=on_gpu)
        self._warned_capturable_if_run_uncaptured = True
        self.found_inf = torch.zeros((), device=device)
        # Torch makes the moments at the first step. Made now, there is one set of
        # tensors from the start for snapshots and checkpoints to hold.
        for param in params:
            self.state[param] = {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(param),
                "exp_avg_sq": torch.zeros_like(param),
            }

    @property
    def rate(self) -> Tensor:
        """The learning rate, a scalar on the device; write into it to change it."""
        return self.param_groups[0]["lr"]

    def step_unless(self, idle: Tensor) -> None:
        """Take a step, but none where `idle` is true: nor does momentum go on."""
        refused = self.found_inf.clone()
        self.found_inf.copy_(torch.maximum(refused, idle))
        self.step()
        self.found_inf.copy_(refused)

    def named_tensors(self) -> dict[str, Tensor]:
        """Return the step counter and the moments of every parameter."""
        return {
            f"adam.{prefix}.{name}.{key}": value
            for prefix, model in self._models.items()
            for name, param in model.named_parameters()
            if param in self.state
            for key, value in self.state[param].items()
        }


class GuardedSteps:
    """Takes one step per minibatch, along gradients averaged over the ranks."""

    loss_figures: tuple[str, ...] = ()
    """Figures that `loss` returns; `kl` among them, where it steers the rate."""

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        storage: SequenceStorage,
        device: str,
        ranks: Ranks,
        compiles: bool = False,
        optimizer: GuardedAdam | None = None,
    ):
        """Allocate all that recorded steps read and write.

        Args:
            models: What learns, by name; gradients are clipped for each of them apart.
            storage: The rollout; it brings the settings.
            device: Where all of them live.
            ranks: Who else takes these steps.
            compiles: Whether a GPU compiles the loss.
            optimizer: Of the same models, if other steps share it.
        """
        self.models, self.storage = dict(models), storage
        self.cfg, self.ranks = storage.cfg, ranks
        for model in self.models.values():
            model.to(device)
        self.device = torch.device(device)
        self._parts = {name: trained(model) for name, model in models.items()}
        self._params = list(chain.from_iterable(self._parts.values()))
        self.optimizer = optimizer or GuardedAdam(
            self.models, self.cfg.learning_rate, device
        )
        # On the device: recorded steps read what it is at the time.
        self.max_rate = torch.tensor(self.cfg.max_learning_rate, device=device)
        norms = (f"{name}_grad_norm" for name in self._parts)
        self._columns = (*self.loss_figures, *norms, "learning_rate", "refused")
        # Two recordings: ranks average in between, which none should contain.
        self.compute_gradients = Recorded(self._compute_gradients, device)
        self.apply_gradients = Recorded(self._apply_gradients, device)
        self._compiled_loss = compiled(self.loss, device, compiles)
        self.ids = torch.zeros(storage.minibatch_size, dtype=torch.long, device=device)
        """The current minibatch."""
        self._figures_row = torch.zeros(len(self._columns), device=device)
        sizes = [param.numel() for param in self._params] + [len(self.loss_figures)]
        self.gradient_and_figures = torch.zeros(sum(sizes), device=device)
        """A minibatch's gradient, then the figures of its loss."""
        *gradients, self._figures = self.gradient_and_figures.split(sizes)
        self._gradients = [
            flat.view_as(param)
            for flat, param in zip(gradients, self._params, strict=True)
        ]

    def loss(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a minibatch and figures about it, all on the device."""
        raise NotImplementedError

    def may_idle(self) -> bool:
        """Tell whether a minibatch may have nothing to learn from."""
        return self.storage.weights is not None

    def run(self, learning_rate: float) -> list[dict[str, float]]:
        """Take all steps of an update; return figures of every minibatch.

        Besides those of the loss: norms of the gradients before clipping, the learning
        rate of the step, and whether a gradient was `refused` up to it.
        """
        self.optimizer.rate.fill_(learning_rate)
        self.optimizer.found_inf.zero_()
        table = []
        for ids in self.storage.minibatch_ids():
            self.ids.copy_(ids)
            self.compute_gradients()
            self.ranks.average(self.gradient_and_figures)
            self.apply_gradients()
            table.append(self._figures_row.clone())
        rows = torch.stack(table).tolist()  # The one time that the host waits.
        return [dict(zip(self._columns, row, strict=True)) for row in rows]

    def _compute_gradients(self) -> None:
        loss, figures = self._compiled_loss(self.storage.minibatch(self.ids))
        self.optimizer.zero_grad()
        loss.backward()
        # Any: a gradient may be none at all, but not after a backward pass.
        computed: list[Any] = [param.grad for param in self._params]
        computed += [figures[name].detach() for name in self.loss_figures]
        flat = [value.flatten() for value in computed]
        torch.cat(flat, out=self.gradient_and_figures)

    @torch.no_grad()
    def _apply_gradients(self) -> None:
        """Take a step along the computed gradient, and write the row of figures."""
        cfg, rate = self.cfg, self.optimizer.rate
        figures: dict[str, Tensor] = {}
        figures.update(zip(self.loss_figures, self._figures, strict=True))
        if cfg.schedule == "adaptive":
            bounds = cfg.min_learning_rate, self.max_rate
            rate.copy_(adapted_rate(rate, figures["kl"], cfg.target_kl, *bounds))
        for param, gradient in zip(self._params, self._gradients, strict=True):
            param.grad = gradient
        for name, params in self._parts.items():
            norm = nn.utils.clip_grad_norm_(params, cfg.max_grad_norm)
            figures[f"{name}_grad_norm"] = norm
            # Once refused, always refused: until the host knows, nothing may follow.
            refused = torch.maximum(self.optimizer.found_inf, ~norm.isfinite())
            self.optimizer.found_inf.copy_(refused)
        if self.may_idle():
            # All weights may be 0. As norms, since all ranks must do the same.
            norms = [figures[f"{name}_grad_norm"] for name in self._parts]
            self.optimizer.step_unless(torch.stack(norms).sum() == 0.0)
        else:
            self.optimizer.step()
        figures |= {"learning_rate": rate, "refused": self.optimizer.found_inf}
        self._figures_row.copy_(torch.stack([figures[name] for name in self._columns]))
