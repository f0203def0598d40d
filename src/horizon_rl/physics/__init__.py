"""Physics: instances of the physical world, and backends that simulate them."""

from typing import TYPE_CHECKING

from horizon_rl.support.lazy import lazy_names

if TYPE_CHECKING:
    from horizon_rl.physics.backend import Backend as Backend
    from horizon_rl.physics.backend import WorldState as WorldState
    from horizon_rl.physics.backend import cores_for_physics as cores_for_physics
    from horizon_rl.physics.cpu import CpuBackend as CpuBackend
    from horizon_rl.physics.draft import WORLD_FIELDS as WORLD_FIELDS
    from horizon_rl.physics.draft import PoolDraft as PoolDraft
    from horizon_rl.physics.draft import Rows as Rows
    from horizon_rl.physics.effects import EFFECTS as EFFECTS
    from horizon_rl.physics.effects import Effect as Effect
    from horizon_rl.physics.effects import check_catalogue as check_catalogue
    from horizon_rl.physics.effects import effect_digests as effect_digests
    from horizon_rl.physics.effects import effects_of as effects_of
    from horizon_rl.physics.effects import own_effects as own_effects
    from horizon_rl.physics.motors import torque_bounds as torque_bounds
    from horizon_rl.physics.pool import Pool as Pool
    from horizon_rl.physics.pool import build_pool as build_pool
    from horizon_rl.physics.pool import join_pools as join_pools
    from horizon_rl.physics.pool import privileged_numbers as privileged_numbers
    from horizon_rl.physics.pool import sample_pool as sample_pool
    from horizon_rl.physics.rates import CONTROL_DT as CONTROL_DT
    from horizon_rl.physics.rates import PHYSICS_STEPS as PHYSICS_STEPS
    from horizon_rl.physics.select import choose_device as choose_device
    from horizon_rl.physics.select import make_backend as make_backend
    from horizon_rl.physics.terrain import ground_for as ground_for

__getattr__, __dir__ = lazy_names(__name__)
