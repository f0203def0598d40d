"""Episode tables in tests, compared and cut; and a policy to fill them."""

from dataclasses import fields

import numpy as np

from horizon_rl.policies.load import EvaluatedPolicy, as_policy
from horizon_rl.task import EpisodeTable


def assert_equal(a: EpisodeTable, b: EpisodeTable) -> None:
    assert len(a) == len(b)
    for field in fields(EpisodeTable):
        x, y = getattr(a, field.name), getattr(b, field.name)
        np.testing.assert_array_equal(x, y, err_msg=field.name)


def head(table: EpisodeTable, n: int) -> EpisodeTable:
    return EpisodeTable(*(getattr(table, f.name)[:n] for f in fields(EpisodeTable)))


def constant(*actions: float) -> EvaluatedPolicy:
    """Return a policy that always takes one action per leg: hip, thigh, calf."""
    row = np.tile(np.array(actions, dtype=np.float32), 4)
    policy = as_policy(lambda obs: np.tile(row, (len(obs), 1)))
    return EvaluatedPolicy("constant", lambda device: policy, is_shared=True)


def table_of(length, error) -> EpisodeTable:
    """Return episodes of these lengths, in steps of 1000, and tracking errors."""
    n = len(length)
    zeros = np.zeros(n, dtype=int)
    return EpisodeTable(
        start=zeros,
        length=np.array(length),
        tracking_error=np.array(error, dtype=np.float32),
        yaw_error=np.full(n, 0.5),
        returns=np.zeros(n),
        cause=np.array([1 if x < 1000 else 0 for x in length]),
        row=np.arange(n),
    )
