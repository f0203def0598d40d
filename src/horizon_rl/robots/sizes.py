"""Size classes of bodies: what holds for the mean robot may not hold for the largest."""

from horizon_rl.robots.morphology import Morphology
from horizon_rl.robots.robot import Robot

SMALL_BELOW_KG, LARGE_FROM_KG = 18.0, 30.0
"""Of 20,000 generated bodies 35.4 % are small, 30.7 % medium and 33.9 % large."""


def size_class(robot: Robot | Morphology) -> str:
    """Name the size class of a robot by the mass of its intact body.

    A payload does not make a body larger. Of the presets Go2 and the five lighter ones
    are small, AlienGo and Laikago medium, Spot, both ANYmals, B1 and B2 large.
    """
    if robot.body_mass_kg < SMALL_BELOW_KG:
        return "small"
    return "medium" if robot.body_mass_kg < LARGE_FROM_KG else "large"
