"""Physics: instances of the physical world, and backends that simulate them."""

from horizon_rl.physics.backend import (
    CONTROL_DT,
    PHYSICS_STEPS,
    Backend,
    Counters,
    WorldState,
)
from horizon_rl.physics.cpu import CpuBackend
from horizon_rl.physics.effects import EFFECTS, Effect, check_catalogue
from horizon_rl.physics.motors import torque_bounds
from horizon_rl.physics.own_effects import effect_digests, effects_of
from horizon_rl.physics.pool import (
    BODY_DESCRIPTORS,
    Pool,
    build_pool,
    join_pools,
    sample_pool,
)
from horizon_rl.physics.rows import WORLD_FIELDS, Rows
from horizon_rl.physics.select import choose_device, make_backend
from horizon_rl.physics.threads import cores_for_physics

__all__ = [
    "BODY_DESCRIPTORS",
    "CONTROL_DT",
    "EFFECTS",
    "PHYSICS_STEPS",
    "WORLD_FIELDS",
    "Backend",
    "Counters",
    "CpuBackend",
    "Effect",
    "Pool",
    "Rows",
    "WorldState",
    "build_pool",
    "check_catalogue",
    "choose_device",
    "cores_for_physics",
    "effect_digests",
    "effects_of",
    "join_pools",
    "make_backend",
    "sample_pool",
    "torque_bounds",
]
