"""Left and right swapped: what a robot observes and does, as a mirror shows it."""

from collections.abc import Iterable, Sequence
from math import copysign
from typing import NamedTuple

from horizon_rl.domains import Catalogue
from horizon_rl.physics.pool import BODY_DESCRIPTORS
from horizon_rl.robots import JOINT_NAMES
from horizon_rl.support.errors import InputError
from horizon_rl.task.observations import ACTOR_LAYOUT

OTHER_SIDE = {"FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}


class Swap(NamedTuple):
    """How numbers look in the mirror: `sign[i]` times number `order[i]`."""

    order: tuple[int, ...]
    sign: tuple[float, ...]


def _swap_joints() -> Swap:
    """A joint is that of the other side's leg; hips, about the x axis, change sign."""
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


def join(parts: Iterable[tuple[Sequence[int], Sequence[float]]]) -> Swap:
    """Return how numbers look in the mirror that lie side by side."""
    order, sign = [], []
    for part_order, part_sign in parts:
        first = len(order)
        order += [first + index for index in part_order]
        sign += part_sign
    return Swap(tuple(order), tuple(sign))


def swap_instance(catalogue: Catalogue) -> Swap:
    """Return how an instance looks in the mirror, in the order of `privileged_numbers`.

    A limit range is mapped to [-1, 1]: to change a number's sign changes the quantity's
    where that range is symmetric about 0. A parameter without an image is refused.
    """
    parts = [([0], [1.0])] * len(BODY_DESCRIPTORS)
    for name, parameter in catalogue.parameters.items():
        draws, limit, places = parameter.draws, parameter.limit, parameter.mirror
        if places is None:
            # One that no level widens is a choice, whose order means nothing.
            widens = parameter.baseline != limit
            places = (1,) if draws == 1 and limit.low >= 0.0 and widens else ()
        if not limit.width:  # Always the middle of its range, 0.
            places = tuple(range(1, draws + 1))
        problem = ""
        # To repeat `[1]` would say that no draw of twelve joints has a side.
        if not places or draws % len(places) or draws > len(places) == 1:
            problem = "the catalogue gives no mirror image of it (`mirror = [1]`, say)"
        elif min(places) < 0 and limit.low != -limit.high:
            problem = f"it changes sign, and its limit {limit} is not symmetric about 0"
        if problem:
            raise InputError(
                f"an oracle that sees {name} cannot be symmetric: {problem}; accepted: "
                "--learner.actor.no-symmetric"
            )
        order = [abs(place) - 1 for place in places]
        sign = [copysign(1.0, place) for place in places]
        parts += [(order, sign)] * (draws // len(places))
    return join(parts)


OBSERVATION = join([VECTORS.get(name, JOINTS) for name, _ in ACTOR_LAYOUT])
"""Of the actor's 45 numbers."""
ACTION = JOINTS
"""Of its 12 actions."""
