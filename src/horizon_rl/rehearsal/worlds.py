"""The synthetic learner in the loop that trains robots, in microseconds a phase."""

from collections.abc import Mapping

import numpy as np

from horizon_rl.curriculum import Episodes, ProbeSet, phase_rng
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains.distribution import AtLevels, Distribution
from horizon_rl.rehearsal.synthetic import (
    SyntheticCfg,
    SyntheticPolicy,
    perform,
    train,
)
from horizon_rl.support.errors import InputError
from horizon_rl.training.protocols import Iteration, Learner, Worlds

EPISODES = 256
"""Episodes of a phase, for a method that learns from each; one a world."""


class SyntheticWorlds(Worlds):
    """Measures a synthetic policy, with noise, at the levels of a phase."""

    def __init__(self, cfg: SyntheticCfg, seed: int):
        self._cfg, self._seed = cfg, seed
        # One episode stands for all of a set, and lasts as long as they do together.
        self.max_length = cfg.probe_env_steps

    def begin(self, phase: int, distribution: Distribution) -> None:
        self.levels = _levels_of(distribution)
        rng = phase_rng(self._seed, phase)
        self._noise = self._cfg.noise * rng.standard_normal(4)

    def step(self, actions: SyntheticPolicy) -> None:
        """Let a policy act; it is its own best description."""
        self._acted = actions

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        """Return one episode that stands for all."""
        if parameters is not None:
            raise InputError("the synthetic learner has no single episodes to tell of")
        length, error, _ = perform(self._acted, self.levels, self._cfg)
        return Episodes(
            start=np.zeros(1),
            length=np.array([self._steps(length + self._noise[0])]),
            tracking_error=np.array([max(0.0, error + 0.5 * self._noise[1])]),
        )

    def probe(
        self, policy: SyntheticPolicy, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        """Measure on all sets.

        The comparison of gate C is paired: what both policies share cancels out. So only
        the current one's difference to the committed one is noisy. Sets of one phase
        share their random numbers, and so the noise of their lengths.
        """
        found = {}
        for name, wanted in sets.items():
            noise = self._noise[2:] if name == "checkpoint" else (0.0, 0.0)
            levels = _levels_of(wanted.distribution)
            length, error, value = perform(policy, levels, self._cfg)
            on_error, on_value = (1.0 + 0.5 * float(x) for x in noise)
            drawn = phase_rng(self._seed, wanted.phase or 0, rank=1).standard_normal()
            found[name] = ProbedEpisodes(
                length=np.array([self._steps(length + self._cfg.noise * drawn)]),
                tracking_error=np.array([error * on_error]),
                returns=np.array([value * on_value]),
            )
        return found

    def _steps(self, length: float) -> float:
        """Return a length in control steps; noise may not take it out of bounds."""
        return self.max_length * min(1.0, max(0.0, length))


class SyntheticLearner(Learner):
    """Has learnt a synthetic policy; one iteration is a whole phase."""

    def __init__(self, policy: SyntheticPolicy, cfg: SyntheticCfg):
        self._policy, self._cfg = policy, cfg
        self.num_steps = cfg.probe_env_steps
        self.steps_per_iteration = cfg.phase_env_steps

    @property
    def policy(self) -> SyntheticPolicy:
        return self._policy

    def begin(self, worlds: SyntheticWorlds) -> None: ...

    def iterate(self, worlds: SyntheticWorlds) -> Iteration:
        self._policy = train(self._policy, worlds.levels, self._cfg)
        worlds.step(self._policy)
        return Iteration()

    def snapshot(self) -> SyntheticPolicy:
        return self._policy

    def restore(self, snapshot: SyntheticPolicy) -> None:
        self._policy = snapshot


def _levels_of(distribution: Distribution) -> Mapping[str, float]:
    if not isinstance(distribution, AtLevels):
        raise InputError(
            f"the synthetic learner knows levels only, not {type(distribution).__name__}"
        )
    return distribution.levels
