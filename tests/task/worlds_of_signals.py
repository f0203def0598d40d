"""Worlds that are nominal but for some parameters of the catalogue `extended`."""

import numpy as np
import torch

from horizon_rl.domains import paper_catalogue, shipped_catalogue
from horizon_rl.physics import Pool, build_pool
from horizon_rl.task import VelocityEnv

ONE = (
    *("mass.scale", "inertia.scale", "sensing.noise_scale"),
    *("contact.static_friction", "contact.dynamic_friction"),
    *("reset.joint_position_scale", "damage.leg_mass", "damage.stuck_at"),
)
"""Parameters whose neutral value is one."""

MOTORS = {
    "actuation.effort_limit": 40.0,
    "actuation.velocity_limit": 30.0,
    "actuation.stiffness": 40.0,
    "actuation.damping": 1.0,
}


def make_pool(go2, n: int, values: dict, *, extended: bool = True) -> Pool:
    """Make n instances of Go2; `values` has a number, or one entry per instance."""
    catalogue = shipped_catalogue("extended") if extended else paper_catalogue()
    chosen = dict.fromkeys(ONE, 1.0) | MOTORS | values
    instances = {}
    for name, parameter in catalogue.parameters.items():
        shape = (n,) if parameter.draws == 1 else (n, parameter.draws)
        value = np.asarray(chosen.get(name, 0.0), dtype=float)
        instances[name] = np.broadcast_to(value, shape).copy()
    return build_pool([go2], catalogue, instances, np.zeros(n, dtype=int))


def record_targets(env: VelocityEnv) -> list[torch.Tensor]:
    """Return a list that what the motors are told in each step will be added to."""
    told: list[torch.Tensor] = []
    step = env.backend.step

    def note(targets: torch.Tensor) -> None:
        told.append(targets.clone())
        step(targets)

    env.backend.step = note
    return told
