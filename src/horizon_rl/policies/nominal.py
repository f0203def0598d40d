"""The robot that a policy is exported for, in the physics that training starts around."""

import numpy as np

from horizon_rl.domains import Catalogue, middle_instance, paper_catalogue
from horizon_rl.evaluation.suite import MOTOR_GROUP, Motors
from horizon_rl.physics import Pool, build_pool
from horizon_rl.robots import Robot


def nominal_pool(robot: Robot, trained: Catalogue, motors: Motors) -> Pool:
    """Build one instance: every parameter in the middle of its baseline range.

    Only motors are taken from the catalogue of the training, since they are all that a
    deployment must set up alike; the rest is the robot's own business. So no policy is
    kept from leaving by a parameter whose effect is not at hand here.

    Args:
        robot: The body.
        trained: Catalogue that the policy was trained with.
        motors: scaled: gains and limits of the training, scaled to the body. own: the
            real robot's.
    """
    kept = [g for g in trained.groups if g.name == MOTOR_GROUP and motors == "scaled"]
    others = [g for g in paper_catalogue().groups if g.name != MOTOR_GROUP]
    catalogue = Catalogue((*kept, *others))
    first = np.zeros(1, dtype=int)
    return build_pool([robot], catalogue, middle_instance(catalogue), first)
