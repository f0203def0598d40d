"""HORIZON's curriculum in a plain Gymnasium loop, in ten seconds on one core.

    pip install -e . gymnasium    # in a clone
    python examples/gymnasium_curriculum.py

A cart balances a pole while the physics of pole, cart and motor widens by leaps.
The learner is as small as one can be: four weights, searched by the cross-entropy
method. Two classes tell the package's own training loop what it needs: `CartPoles`, the
worlds, and `CrossEntropy`, the learner.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Entry,
    Episodes,
    GateCfg,
    Horizon,
    LeapCfg,
    ProbeSet,
    phase_rng,
)
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains import Distribution, Instances, parse_catalogue
from horizon_rl.training.loop import run_phases
from horizon_rl.training.protocols import Iteration, Learner, Worlds

CATALOGUE = parse_catalogue("""
[groups.pole.parameters]
length = { baseline = [0.45, 0.55], limit = [0.05, 3.0], unit = "m" }
mass = { baseline = [0.09, 0.11], limit = [0.02, 2.0], unit = "kg" }
[groups.cart.parameters]
mass = { baseline = [0.9, 1.1], limit = [0.2, 8.0], unit = "kg" }
[groups.motor.parameters]
force = { baseline = [9.0, 11.0], limit = [1.0, 40.0], unit = "N" }
""")
# Errors are distances from the centre here, in metres: of a few centimetres 5 % is noise.
CFG = CurriculumCfg(gates=GateCfg(max_error=0.3, error_slack=0.05))
LEAP = LeapCfg(recovery=0.9, ready=0.0)  # A phase costs a second here: be bold.
FIELDS = {
    "pole.length": "length",
    "pole.mass": "masspole",
    "cart.mass": "masscart",
    "motor.force": "force_mag",
}
"""By parameter: the simulator's field."""
GENERATIONS, POPULATION, ELITE = 3, 10, 3
"""Of a phase: rounds of the search, candidates in each, those that shape the next."""
TRAINED_ON, MEASURED_ON = 5, 16
"""Instances that a candidate is tried on, and that a policy is judged by."""


class CartPoles(Worlds):
    """CartPole under sampled physics, one instance after the other."""

    max_length = 250

    def __init__(self, seed: int):
        self._seed = seed
        self._env = gym.make("CartPole-v1", max_episode_steps=self.max_length)

    def begin(self, phase: int, distribution: Distribution) -> None:
        self.rng, self._now = (
            phase_rng(self._seed, phase),
            ProbeSet(phase, distribution),
        )

    def step(self, actions: np.ndarray) -> float:
        """Try weights on fresh instances; return what they are worth."""
        self._tried = actions
        instances = self._now.distribution.sample(CATALOGUE, TRAINED_ON, self.rng)
        return float(self._play(actions, instances).returns.mean())

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        """Return episodes of what was tried last, for gate L."""
        found = self._play(self._tried, self._frozen(self._now))
        return Episodes(np.zeros(MEASURED_ON), found.length, found.tracking_error)

    def probe(
        self, policy: np.ndarray, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        return {k: self._play(policy, self._frozen(each)) for k, each in sets.items()}

    def _frozen(self, wanted: ProbeSet) -> Instances:
        """Draw a set of instances: its phase's number gives the same every time."""
        rng = phase_rng(self._seed + 1, wanted.phase or 0)
        return wanted.distribution.sample(CATALOGUE, MEASURED_ON, rng)

    def _play(self, weights: np.ndarray, instances: Instances) -> ProbedEpisodes:
        """Run one episode in each of the instances."""
        cart: Any = self._env.unwrapped
        episodes = []
        for i in range(len(instances["cart.mass"])):
            for name, field in FIELDS.items():
                setattr(cart, field, instances[name][i])
            cart.total_mass = cart.masscart + cart.masspole
            cart.polemass_length = cart.masspole * cart.length
            state, _ = self._env.reset(seed=i)
            distances, done = [], False
            while not done:
                state, _, fell, late, _ = self._env.step(int(weights @ state > 0.0))
                distances.append(abs(float(state[0])))
                done = fell or late
            error = float(np.mean(distances))
            episodes.append((len(distances), error, len(distances) * (1.0 - error)))
        return ProbedEpisodes(*np.array(episodes).T)


class CrossEntropy(Learner):
    """Searches around its weights; an iteration is a phase."""

    num_steps = CartPoles.max_length
    steps_per_iteration = 0  # Not counted here.

    def __init__(self) -> None:
        self._weights, self._spread = np.zeros(4), np.ones(4)

    @property
    def policy(self) -> np.ndarray:
        return self._weights

    def begin(self, worlds: CartPoles) -> None: ...

    def iterate(self, worlds: CartPoles) -> Iteration:
        for _ in range(GENERATIONS):
            tries = worlds.rng.normal(self._weights, self._spread, (POPULATION, 4))
            best = np.argsort([-worlds.step(weights) for weights in tries])[:ELITE]
            self._weights = tries[best].mean(axis=0)
            self._spread = 0.5 * (self._spread + tries[best].std(axis=0) + 0.05)
        worlds.step(self._weights)
        return Iteration()

    def snapshot(self) -> tuple[np.ndarray, np.ndarray]:
        return self._weights, self._spread

    def restore(self, snapshot: tuple[np.ndarray, np.ndarray]) -> None:
        self._weights, self._spread = snapshot


def main(seed: int = 0, phases: int = 14) -> list[Entry]:
    """Widen the physics for this many phases; return what was decided, and why."""
    method = Horizon(cfg=replace(CFG, max_phases=phases), leap=LEAP)
    curriculum = Curriculum(CATALOGUE.names, method)
    for event in run_phases(curriculum, CartPoles(seed), CrossEntropy()):
        if isinstance(event, Entry):
            print(f"phase {event.proposal.phase}: {event.decision.reason}")
    mastered = curriculum.state.mastered
    reached = (f"{name} {level:.2f}" for name, level in mastered.items())
    print("Mastered:", ", ".join(reached))
    for name, found in CATALOGUE.ranges(mastered).items():
        print(f"  {name}: {found} {CATALOGUE.parameters[name].unit}")
    return curriculum.entries


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Widen CartPole's physics.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--phases", type=int, default=14)
    main(**vars(parser.parse_args()))
