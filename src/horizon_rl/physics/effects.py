"""Effects: what each parameter does to a world, one function each.

A parameter of your own is an entry in a catalogue that names its function,
`effect = "mine.py:add_payload"`; in Python, an `Effect` under the parameter's name:
`EFFECTS | {"mass.payload": Effect(add_payload)}`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf, pi
from typing import Any

import numpy as np

from horizon_rl.domains import Catalogue, Instances
from horizon_rl.physics import damage
from horizon_rl.physics.draft import PoolDraft
from horizon_rl.physics.stilts import lengthen_calves
from horizon_rl.physics.terrain import CHOICE, TERRAIN_GROUP
from horizon_rl.robots.terrain import KINDS
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.named_code import code_digest, find_code, last_digest

CONTACT_RATE = 50.0
"""Undamped frequency of a contact, rad/s: MuJoCo's default time constant, 0.02 s."""

MAX_RESTITUTION = 0.95
"""At 1 a contact would never lose energy, and discretisation would add some."""

DAMPING_CORRECTION = 1.08
"""Contacts cannot pull, so they let go before a spring would, faster. Measured by drop
tests from 0.1 to 0.3 m at 5 ms: a lone foot asks for 1.01 on average, Go2 on four feet
for 1.10; this brings both within 7 % of the desired restitution, from 0.3 up."""

LONGEST_DELAY_S = 1.0
"""Longest time that an action can be late."""

NAMED = (
    "FILE.py:NAME or MODULE:NAME of a function that takes a PoolDraft and values, or of "
    "an Effect"
)


@dataclass(frozen=True)
class Effect:
    """How a parameter's values act, and which values are physically possible."""

    apply: Callable[[PoolDraft, np.ndarray], object]
    """Changes a draft by values of shape [n] or [n, draws], in body-scaled units."""
    low: float = -inf
    high: float = inf
    draws: int | None = None
    """Draws per instance that `apply` takes; None: it takes what there is."""

    @property
    def accepted(self) -> str:
        return f"accepted: {self.low:g}..{self.high:g}"


def scale_mass(draft: PoolDraft, factor: np.ndarray) -> None:
    """Scale mass and inertia together: the same shape of another density."""
    draft.fields["body_mass"] *= factor[:, None]
    draft.fields["body_inertia"] *= factor[:, None, None]


def scale_inertia(draft: PoolDraft, factor: np.ndarray) -> None:
    """Scale inertia alone; uniformly, which keeps the triangle inequality."""
    draft.fields["body_inertia"] *= factor[:, None, None]


def shift_com(draft: PoolDraft, offset: np.ndarray) -> None:
    """Shift the trunk's centre of mass; it may leave the trunk."""
    draft.fields["body_ipos"][:, draft.robot.trunk_body_id] += offset


def set_motors(name: str) -> Callable[[PoolDraft, np.ndarray], None]:
    """Give all twelve motors one value of stiffness, damping, effort or speed."""

    def fill(draft: PoolDraft, values: np.ndarray) -> None:
        getattr(draft, name)[:] = values[:, None]

    return fill


def set_push_velocity(draft: PoolDraft, velocity: np.ndarray) -> None:
    """Plan pushes: x, y of the first, x, y of the next."""
    if velocity.ndim != 2 or velocity.shape[1] % 2:
        raise InputError("disturbance.push_velocity: needs 2 draws per push, x and y")
    draft.push_velocity = velocity.reshape(len(velocity), -1, 2)


def set_force(draft: PoolDraft, force: np.ndarray) -> None:
    draft.wrench[:, :3] = force


def set_torque(draft: PoolDraft, torque: np.ndarray) -> None:
    draft.wrench[:, 3:] = torque


def limit_friction(draft: PoolDraft, coefficient: np.ndarray) -> None:
    """Take the least of static and dynamic friction: MuJoCo has one coefficient."""
    draft.friction = np.minimum(draft.friction, coefficient)


def set_restitution(draft: PoolDraft, restitution: np.ndarray) -> None:
    """Damp contacts so that they rebound at `restitution` times the impact speed.

    A contact is a damped spring (direct solref); e = exp(-pi z / sqrt(1 - z^2)) gives
    the damping ratio z. At e = 0 it stays as compiled: MuJoCo's default, with z = 1.
    """
    bounces = restitution > 0.0
    logs = np.log(np.clip(restitution[bounces], 1e-6, MAX_RESTITUTION))
    ratio = DAMPING_CORRECTION * -logs / np.sqrt(pi**2 + logs**2)
    stiffness = np.full_like(ratio, CONTACT_RATE**2)
    damping = 2.0 * CONTACT_RATE * np.minimum(ratio, 1.0)
    solref = -np.stack([stiffness, damping], axis=1)
    where = np.ix_(bounces, draft.ground_geom_ids)
    draft.fields["geom_solref"][where] = solref[:, None]


def scale_start_position(draft: PoolDraft, factor: np.ndarray) -> None:
    """Scale the default angles at the start, within the joints' ranges."""
    draft.start_position = np.clip(draft.start_position * factor, *draft.joint_ranges())


def set_start_velocity(draft: PoolDraft, velocity: np.ndarray) -> None:
    draft.start_velocity = velocity.copy()


def shift_encoders(draft: PoolDraft, bias: np.ndarray) -> None:
    """Let encoders read `bias` more than the joints' angles.

    What the robot reads and where its motors' controllers go shift alike: both follow
    from the pose that it takes for its default. Nothing else in the world moves.
    """
    draft.default_pose -= bias


def add_to_joints(field: str) -> Callable[[PoolDraft, np.ndarray], None]:
    """Add to a model field of the twelve joints, which their own numbers stay part of."""

    def add(draft: PoolDraft, values: np.ndarray) -> None:
        draft.fields[field][:, draft.robot.dof_adr] += values

    return add


def set_terrain(kind: str) -> Callable[[PoolDraft, np.ndarray], None]:
    """Ask for ground of a kind; `lay_ground` chooses where several are asked for."""

    def keep(draft: PoolDraft, values: np.ndarray) -> None:
        draft.terrain[kind] = values

    return keep


def set_signal(name: str) -> Callable[[PoolDraft, np.ndarray], None]:
    """Hand a parameter's values on to the task, which acts on signals of that name."""

    def keep(draft: PoolDraft, values: np.ndarray) -> None:
        draft.signals[name] = values

    return keep


EFFECTS: dict[str, Effect] = {
    "actuation.effort_limit": Effect(set_motors("effort"), low=0.0, draws=1),
    "actuation.velocity_limit": Effect(set_motors("velocity_limit"), low=0.1, draws=1),
    "actuation.stiffness": Effect(set_motors("stiffness"), low=0.0, draws=1),
    "actuation.damping": Effect(set_motors("damping"), low=0.0, draws=1),
    "mass.scale": Effect(scale_mass, low=0.01, draws=1),
    "disturbance.push_velocity": Effect(set_push_velocity),
    "disturbance.external_force": Effect(set_force, draws=3),
    "disturbance.external_torque": Effect(set_torque, draws=3),
    "contact.static_friction": Effect(limit_friction, low=0.0, draws=1),
    "contact.dynamic_friction": Effect(limit_friction, low=0.0, draws=1),
    "contact.restitution": Effect(set_restitution, low=0.0, high=1.0, draws=1),
    "inertia.scale": Effect(scale_inertia, low=0.01, draws=1),
    "com.offset": Effect(shift_com, draws=3),
    "reset.joint_position_scale": Effect(scale_start_position, draws=12),
    "reset.joint_velocity": Effect(set_start_velocity, draws=12),
    "latency.action_delay": Effect(
        set_signal("action_delay"), low=0.0, high=LONGEST_DELAY_S, draws=1
    ),
    "sensing.noise_scale": Effect(set_signal("noise_scale"), low=0.0, draws=1),
    "sensing.gyro_bias": Effect(set_signal("gyro_bias"), draws=3),
    "sensing.gravity_bias": Effect(set_signal("gravity_bias"), draws=3),
    "sensing.encoder_bias": Effect(shift_encoders, draws=12),
    "sensing.lost_readings": Effect(
        set_signal("lost_readings"), low=0.0, high=1.0, draws=1
    ),
    "drivetrain.friction": Effect(add_to_joints("dof_frictionloss"), low=0.0, draws=12),
    "drivetrain.damping": Effect(add_to_joints("dof_damping"), low=0.0, draws=12),
    "drivetrain.armature": Effect(add_to_joints("dof_armature"), low=0.0, draws=12),
    "damage.stilts": Effect(damage.add_stilts, low=0.0, draws=2),
    "damage.calf_length": Effect(lengthen_calves, low=0.0, draws=4),
    "damage.leg_mass": Effect(damage.scale_legs, low=0.01, draws=4),
    "damage.faulty_joints": Effect(
        damage.choose_faulty_joints, low=0.0, high=1.0, draws=1
    ),
    "damage.stuck_at": Effect(damage.scale_stuck_angles, draws=1),
    "damage.travel_lost": Effect(damage.lose_travel, low=0.0, draws=1),
    "damage.strength_lost": Effect(damage.lose_strength, low=0.0, high=1.0, draws=1),
    **{
        f"{TERRAIN_GROUP}.{kind.name}": Effect(
            set_terrain(kind.name), kind.low, kind.sizes[-1], draws=1
        )
        for kind in KINDS
    },
    CHOICE: Effect(set_terrain("choice"), low=0.0, high=1.0, draws=1),
}
"""By full name: the paper's seven groups, then those of the catalogue `extended`."""


def own_effects(catalogue: Catalogue) -> dict[str, str]:
    """Return the code that the catalogue itself names, by parameter; nothing runs."""
    return {n: p.effect for n, p in catalogue.parameters.items() if p.effect}


def effects_of(catalogue: Catalogue) -> dict[str, Effect]:
    """Return the package's effects and those that the catalogue itself names."""
    own = own_effects(catalogue).items()
    return EFFECTS | {name: _load_effect(source) for name, source in own}


def effect_digests(catalogue: Catalogue) -> dict[str, str]:
    """Return a hash of the code of each effect that the catalogue itself names."""
    own = own_effects(catalogue).items()
    return {name: code_digest(source) for name, source in own}


@cache
def _load_effect(source: str) -> Effect:
    """Import an effect once: what it is made of may cost, and must not be made twice."""
    found: Any = find_code(source, "effect", NAMED, last_digest(source))
    if not (isinstance(found, Effect) or callable(found)):
        raise InputError(f"'{source}' is no effect. Accepted: {NAMED}")
    return found if isinstance(found, Effect) else Effect(apply=found)


def check_catalogue(
    catalogue: Catalogue, effects: Mapping[str, Effect] = EFFECTS
) -> None:
    """Refuse parameters that nothing applies, and limits no physics allows."""
    for name, parameter in catalogue.parameters.items():
        if name not in effects:
            raise InputError(
                f"nothing applies {unknown('parameter', name, effects)}. One of your "
                "own names its effect: see docs/own-domain.md"
            )
        effect, limit = effects[name], parameter.limit
        if limit.low < effect.low or limit.high > effect.high:
            raise InputError(f"{name}: limit {limit} is impossible; {effect.accepted}")
        if effect.draws not in (None, parameter.draws):
            raise InputError(
                f"{name}: draws = {parameter.draws}; accepted: {effect.draws}"
            )


def check_values(instances: Instances, effects: Mapping[str, Effect]) -> None:
    """Refuse values that no physics allows: exact ones need not lie in the limits."""
    for name, values in instances.items():
        effect = effects[name]
        possible = (values >= effect.low) & (values <= effect.high)
        wrong = values[~(possible & np.isfinite(values))]
        if wrong.size:
            raise InputError(f"{name} = {wrong[0]:g} is impossible; {effect.accepted}")


def apply_effects(
    draft: PoolDraft,
    instances: Instances,
    scales: Mapping[str, np.ndarray],
    effects: Mapping[str, Effect],
) -> None:
    """Apply all parameters' values, times each body's scale [n], to a draft.

    In the order of `scales`, the catalogue's: adding and scaling do not commute.
    """
    for name, factors in scales.items():
        values = instances[name]
        scale = factors.reshape(-1, *[1] * (values.ndim - 1))
        effects[name].apply(draft, values * scale)
