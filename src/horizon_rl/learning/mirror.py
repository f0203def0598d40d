"""How often an actor looks at a world: once, or also at its mirror image."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

Swapped = tuple[Sequence[int], Sequence[float]]
"""Where each number of a mirror image comes from, and the sign it gets."""
InstanceImage = Callable[[], Swapped]
"""Returns the mirror image of the group `privileged`; asked for a symmetric oracle."""


class OneView(nn.Module):
    """Shows a network every world as it is."""

    num_views = 1
    """Times that it sees a world."""

    def add_views(self, raw: Tensor, dim: int) -> Tensor:
        """Return inputs [..., inputs] in all views, along `dim`, that of worlds."""
        return raw

    def mean_action(self, actions: Tensor) -> Tensor:
        """Return the mean [..., n, -] of the actions [..., num_views * n, -] of all views."""
        return actions


class Mirror(OneView):
    """Shows a network every world twice: as it is, and left and right swapped.

    The mean of what it does in the one and, swapped back, in the other is symmetric,
    whatever the network is. What it learns on one side it can do on the other, and
    errors of its two views average out.
    """

    num_views = 2
    input_order: Tensor
    input_sign: Tensor
    action_order: Tensor
    action_sign: Tensor

    def __init__(self, inputs: Swapped, actions: Swapped):
        super().__init__()
        for name, (order, sign) in (("input", inputs), ("action", actions)):
            # Facts of the task, not weights: they are in no checkpoint.
            orders, signs = torch.tensor(order), torch.tensor(sign)
            self.register_buffer(f"{name}_order", orders, persistent=False)
            self.register_buffer(f"{name}_sign", signs, persistent=False)

    def add_views(self, raw: Tensor, dim: int) -> Tensor:
        image = raw.index_select(-1, self.input_order) * self.input_sign
        return torch.cat((raw, image), dim)

    def mean_action(self, actions: Tensor) -> Tensor:
        seen, image = actions.chunk(2, dim=-2)
        back = image.index_select(-1, self.action_order) * self.action_sign
        return 0.5 * (seen + back)
