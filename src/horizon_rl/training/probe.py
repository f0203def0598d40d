"""The probe: a policy's mean actions on frozen scenarios, in worlds of its own.

One rollout at the end of a phase runs three sets: the checkpoint's scenarios (gate C
compares there), fresh ones of the candidate (should it be committed, they are the next
phases' reference), and the anchor at level 0, the same throughout the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from horizon_rl.curriculum import phase_rng
from horizon_rl.physics import make_backend
from horizon_rl.task import (
    EpisodeTable,
    Policy,
    Scenarios,
    VelocityEnv,
    join_scenarios,
    rollout,
)
from horizon_rl.training.trainer import Trainer

PROBE = 1 << 31
"""Added to a phase's number, gives its stream of scenarios: no training gets there."""


@dataclass(frozen=True)
class Reference:
    """The checkpoint as gate C compares with it."""

    phase: int
    """Phase that committed it, and drew its scenarios."""
    commits: int
    """Commits before it."""
    error: float | None
    """Its tracking error on its scenarios, m/s."""
    value: float | None
    """Its return on them."""


class ProbeSet(NamedTuple):
    """Scenarios to run: from which stream, how many, at which levels."""

    stream: int
    size: int
    levels: Mapping[str, float]


class Prober:
    """Worlds for probes alone: training's are not disturbed, and none run idle."""

    def __init__(
        self,
        trainer: Trainer,
        device: str,
    ):
        """Make worlds for two sets of scenarios and the anchor, beside a trainer's."""
        self._cfg, self._draw = trainer.cfg, trainer.draw_scenarios
        num_worlds = self._cfg.anchor_scenarios + 2 * self._cfg.probe_scenarios
        num_threads = trainer.ranks.num_threads
        backend = make_backend(trainer.robots[0], num_worlds, device, num_threads)
        self._env = VelocityEnv(backend, self._cfg.task)
        self._drawn: dict[int, Scenarios] = {}

    def run(
        self,
        policy: Policy,
        *,
        phase: int,
        levels: Mapping[str, float],
        mastered: Mapping[str, float],
        reference: Reference | None,
    ) -> dict[str, EpisodeTable]:
        """Return the episodes on the sets `checkpoint`, `candidate` and `anchor`.

        Args:
            policy: Acts.
            phase: Its scenarios are drawn for the candidate.
            levels: The candidate's levels.
            mastered: The checkpoint's.
            reference: The checkpoint; None before the first commit, when there is no
                such set.
        """
        sets = self._choose(phase, levels, mastered, reference)
        seed, known = self._cfg.seed, self._drawn
        self._drawn = {
            wanted.stream: known.get(wanted.stream) or self._draw_set(wanted)
            for wanted in sets.values()
        }
        scenarios = join_scenarios(list(self._drawn.values()))
        noise_seed = int(phase_rng(seed, PROBE).integers(1 << 62))
        episodes = rollout(self._env, policy, scenarios, seed=noise_seed)
        ends = np.cumsum([wanted.size for wanted in sets.values()]).tolist()
        return {
            name: episodes.rows(slice(end - wanted.size, end))
            for (name, wanted), end in zip(sets.items(), ends, strict=True)
        }

    def _draw_set(self, wanted: ProbeSet) -> Scenarios:
        """Draw a set whose scenarios keep their noise from probe to probe."""
        rng = phase_rng(self._cfg.seed, wanted.stream)
        drawn = self._draw(wanted.levels, wanted.size, rng)
        first = int(rng.integers(1 << 31))
        return replace(drawn, ids=first + np.arange(wanted.size))

    def _choose(
        self,
        phase: int,
        levels: Mapping[str, float],
        mastered: Mapping[str, float],
        reference: Reference | None,
    ) -> dict[str, ProbeSet]:
        """Name the sets in the order of their rows."""
        n, num_anchors = self._cfg.probe_scenarios, self._cfg.anchor_scenarios
        anchor = ProbeSet(PROBE, num_anchors, dict.fromkeys(levels, 0.0))
        sets = {"anchor": anchor, "candidate": ProbeSet(PROBE + 1 + phase, n, levels)}
        if reference:
            sets["checkpoint"] = ProbeSet(PROBE + 1 + reference.phase, n, mastered)
        return {name: wanted for name, wanted in sets.items() if wanted.size}
