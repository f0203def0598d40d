"""Adam whose rate and whose refusals stay on the device."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class GuardedAdam(torch.optim.Adam):
    """Fused Adam that leaves everything as it is while `found_inf` is 1.

    `found_inf` is how torch's gradient scaler tells the fused kernel to skip a step:
    the kernel reads it on the device. The rate is a tensor for the same reason.
    """

    found_inf: Tensor

    def __init__(self, models: Mapping[str, nn.Module], lr: float, device: str):
        """Optimise all parameters of models, which are known by name."""
        self._models = models
        params = [p for model in models.values() for p in model.parameters()]
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

    def named_tensors(self) -> dict[str, Tensor]:
        """Return the step counter and the moments of every parameter."""
        return {
            f"adam.{prefix}.{name}.{key}": value
            for prefix, model in self._models.items()
            for name, param in model.named_parameters()
            for key, value in self.state[param].items()
        }
