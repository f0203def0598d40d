"""A box on the robot's back: the one function behind `payload.toml`."""

import numpy as np

from horizon_rl.physics import Effect, PoolDraft

BOX_M = np.array([0.0, 0.0, 0.12])
"""Where the box's centre lies in the trunk's frame, m."""


def _strap_box(draft: PoolDraft, kilograms: np.ndarray) -> None:
    """Add a point mass to the trunk: mass, centre of mass, inertia about it."""
    trunk = draft.robot.trunk_body_id
    mass, com = draft.fields["body_mass"], draft.fields["body_ipos"]
    old = mass[:, trunk].copy()
    arm = BOX_M - com[:, trunk]
    reduced = old * kilograms / (old + kilograms)
    # About principal axes: exact where these are the trunk's own, as on Go2 they nearly
    # are.
    across = (arm**2).sum(axis=1, keepdims=True) - arm**2
    draft.fields["body_inertia"][:, trunk] += reduced[:, None] * across
    com[:, trunk] += arm * (kilograms / (old + kilograms))[:, None]
    mass[:, trunk] += kilograms


strap_box = Effect(_strap_box, low=0.0, draws=1)
