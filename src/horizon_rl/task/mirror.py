"""Left and right swapped: what a robot observes and does, as a mirror shows it."""

from typing import NamedTuple

from horizon_rl.robots import JOINT_NAMES
from horizon_rl.task.observations import ACTOR_LAYOUT

OTHER_SIDE = {"FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}


class Swap(NamedTuple):
    """How numbers look in the mirror: `sign[i]` times number `order[i]`."""

    order: tuple[int, ...]
    sign: tuple[float, ...]


def _swap_joints() -> Swap:
    """A joint is that of the other side's leg; hips, about the x axis, turn around."""
    order, sign = [], []
    for name in JOINT_NAMES:
        leg, kind = name.split("_")
        order.append(JOINT_NAMES.index(f"{OTHER_SIDE[leg]}_{kind}"))
        sign.append(-1.0 if kind == "hip" else 1.0)
    return Swap(tuple(order), tuple(sign))


JOINTS = _swap_joints()
VECTORS = {
    # The mirror is the plane of x and z; a rotation is no arrow, but turns about one.
    "angular_velocity": Swap((0, 1, 2), (-1.0, 1.0, -1.0)),
    "gravity": Swap((0, 1, 2), (1.0, -1.0, 1.0)),
    # Forward, to the left, and the rate of turning to the left.
    "command": Swap((0, 1, 2), (1.0, -1.0, -1.0)),
}


def _swap_observation() -> Swap:
    order, sign = [], []
    for name, _ in ACTOR_LAYOUT:
        part, first = VECTORS.get(name, JOINTS), len(order)
        order += [first + index for index in part.order]
        sign += part.sign
    return Swap(tuple(order), tuple(sign))


OBSERVATION = _swap_observation()
"""Of the actor's 45 numbers."""
ACTION = JOINTS
"""Of its 12 actions."""
