"""The synthetic learner in the loop that trains robots, in microseconds a phase."""

from collections.abc import Mapping

import numpy as np

from horizon_rl.curriculum import Episodes, ProbeSet, phase_rng
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains.distribution import (
    SCORE,
    TRAINS,
    AtLevels,
    Distribution,
    Instances,
    LevelDistribution,
)
from horizon_rl.rehearsal.synthetic import (
    FALLEN,
    SyntheticCfg,
    SyntheticPolicy,
    fall_rate,
    perform,
    train,
)
from horizon_rl.support.errors import InputError
from horizon_rl.training.protocols import Iteration, Learner, Worlds

EPISODES = 256
"""Episodes of a phase, for a method that learns from each; one a world."""
LEARNT = 0.9
"""A phase of many levels teaches as much as one at this quantile of them."""


class SyntheticWorlds(Worlds):
    """Measures a synthetic policy, with noise, at the levels of a phase."""

    def __init__(self, cfg: SyntheticCfg, seed: int):
        self._cfg, self._seed = cfg, seed
        # One episode stands for all of a set, and lasts as long as they do together.
        self.max_length = cfg.probe_env_steps

    def begin(self, phase: int, distribution: Distribution) -> None:
        self._phase, self._distribution = phase, distribution
        self.levels, self.trains = self._levels_of(distribution, phase)
        rng = phase_rng(self._seed, phase)
        self._noise = self._cfg.noise * rng.standard_normal(4)

    def step(self, actions: SyntheticPolicy) -> None:
        """Let a policy act; it is its own best description."""
        self._acted = actions

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        """Return one episode that stands for all; or all, where groups are named."""
        if parameters is not None:
            return self._single_episodes(parameters)
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
            levels, _ = self._levels_of(wanted.distribution, wanted.phase or 0)
            length, error, value = perform(policy, levels, self._cfg)
            on_error, on_value = (1.0 + 0.5 * float(x) for x in noise)
            drawn = phase_rng(self._seed, wanted.phase or 0, rank=1).standard_normal()
            found[name] = ProbedEpisodes(
                length=np.array([self._steps(length + self._cfg.noise * drawn)]),
                tracking_error=np.array([error * on_error]),
                returns=np.array([value * on_value]),
            )
        return found

    def _single_episodes(self, groups: tuple[str, ...]) -> Episodes:
        """Return episodes that end in a fall or last, each at its instance's levels."""
        levels, marks = self._draw(self._distribution, self._phase)
        if unknown := {*groups} - {*marks, SCORE}:
            raise InputError(
                "the synthetic learner knows marks of groups only, not "
                + ", ".join(sorted(unknown))
            )
        rng, cfg = phase_rng(self._seed, self._phase, rank=2), self._cfg
        luck, noise = rng.random(EPISODES), cfg.noise * rng.standard_normal(EPISODES)
        length, error, value, expected = np.empty((4, EPISODES))
        for k in range(EPISODES):
            here = {group: float(each[k]) for group, each in levels.items()}
            fell = luck[k] < fall_rate(self._acted, here, cfg)
            length[k] = FALLEN if fell else 1.0
            expected[k], error[k], value[k] = perform(self._acted, here, cfg)
        # What a critic that knows the instance would have been too pessimistic by.
        marks = marks | {SCORE: np.maximum(length - expected, 0.0)}
        # A group may have several marks.
        columns = [marks[group].reshape(EPISODES, -1) for group in groups]
        return Episodes(
            start=np.zeros(EPISODES),
            length=self.max_length * length,
            tracking_error=np.maximum(error + 0.5 * noise, 0.0),
            row=np.arange(EPISODES),
            returns=value,
            values=np.concatenate([np.zeros((EPISODES, 0)), *columns], axis=1),
            world=np.arange(EPISODES),
        )

    def _draw(
        self, distribution: Distribution, phase: int
    ) -> tuple[Instances, Instances]:
        """Draw levels and marks of a phase's instances."""
        if not isinstance(distribution, LevelDistribution):
            raise InputError(
                "the synthetic learner knows levels only, not "
                + type(distribution).__name__
            )
        return distribution.sample_levels(EPISODES, phase_rng(self._seed, phase, 3))

    def _levels_of(
        self, distribution: Distribution, phase: int
    ) -> tuple[Mapping[str, float], bool]:
        """Return the levels that count for a whole phase, or a probe.

        And whether the policy may learn from any of its instances.
        """
        if isinstance(distribution, AtLevels):
            return distribution.levels, True
        levels, marks = self._draw(distribution, phase)
        trains = marks.get(TRAINS, np.ones(EPISODES)) > 0.0
        some = bool(trains.any())
        rows = trains if some else slice(None)
        own = {g: float(np.quantile(e[rows], LEARNT)) for g, e in levels.items()}
        return own, some

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
        if worlds.trains:
            self._policy = train(self._policy, worlds.levels, self._cfg)
        worlds.step(self._policy)
        return Iteration()

    def snapshot(self) -> SyntheticPolicy:
        return self._policy

    def restore(self, snapshot: SyntheticPolicy) -> None:
        self._policy = snapshot
