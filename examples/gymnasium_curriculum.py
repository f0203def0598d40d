"""HORIZON's curriculum core in a plain Gymnasium loop, in ten seconds on one core.

    pip install horizon-rl gymnasium
    python examples/gymnasium_curriculum.py

A cart balances a pole while the physics of pole, cart and motor widens group by group.
The learner is as small as one can be: four weights, searched by the cross-entropy
method. What matters is the loop in `main`: ask, train, measure, tell, keep or restore.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Entry,
    Evidence,
    GateCfg,
    phase_rng,
)
from horizon_rl.domains import Instances, parse_catalogue, sample

CATALOGUE = parse_catalogue("""
[groups.pole.parameters]
length = { baseline = [0.45, 0.55], limit = [0.05, 3.0], unit = "m" }
mass = { baseline = [0.09, 0.11], limit = [0.02, 2.0], unit = "kg" }
[groups.cart.parameters]
mass = { baseline = [0.9, 1.1], limit = [0.2, 8.0], unit = "kg" }
[groups.motor.parameters]
force = { baseline = [9.0, 11.0], limit = [1.0, 40.0], unit = "N" }
""")
MAX_STEPS = 250
# Errors are distances from the centre here, in metres: of a few centimetres 5 % is noise.
CFG = CurriculumCfg(gates=GateCfg(max_error=0.3, error_slack=0.05), min_step=0.1)
GENERATIONS, POPULATION, ELITE = 3, 10, 3
"""Of a phase: rounds of the search, candidates in each, those that shape the next."""
TRAINED_ON, MEASURED_ON = 5, 24
"""Instances that a candidate is tried on, and that a policy is judged by."""


@dataclass(frozen=True)
class Learner:
    """Everything that learns, as a value: to keep it is to hold on to it."""

    weights: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True)
class Score:
    """Means over episodes."""

    length: float
    error: float
    value: float


def play(env: gym.Env, weights: np.ndarray, instances: Instances) -> Score:
    """Run one episode in each of the instances."""
    cart: Any = env.unwrapped
    episodes = []
    for i in range(len(instances["cart.mass"])):
        # The one line that knows the simulator: parameters into its fields.
        cart.length, cart.masspole = (
            instances["pole.length"][i],
            instances["pole.mass"][i],
        )
        cart.masscart, cart.force_mag = (
            instances["cart.mass"][i],
            instances["motor.force"][i],
        )
        cart.total_mass = cart.masscart + cart.masspole
        cart.polemass_length = cart.masspole * cart.length
        state, _ = env.reset(seed=i)
        distances, done = [], False
        while not done:
            state, _, fell, timed_out, _ = env.step(int(weights @ state > 0.0))
            distances.append(abs(float(state[0])))
            done = fell or timed_out
        error = float(np.mean(distances))
        episodes.append(
            (len(distances) / MAX_STEPS, error, len(distances) * (1.0 - error))
        )
    return Score(*np.mean(episodes, axis=0))


def train(
    env: gym.Env,
    learner: Learner,
    instances: Sequence[Instances],
    rng: np.random.Generator,
) -> Learner:
    """Search around the learner's weights, in other instances every generation."""
    weights, spread = learner.weights, learner.spread
    for batch in instances:
        tries = rng.normal(weights, spread, (POPULATION, 4))
        best = np.argsort([-play(env, w, batch).value for w in tries])[:ELITE]
        weights = tries[best].mean(axis=0)
        spread = 0.5 * spread + 0.5 * (tries[best].std(axis=0) + 0.05)
    return Learner(weights, spread)


def main(seed: int = 0, phases: int = 24) -> list[Entry]:
    """Widen the physics for so many phases; return what was decided, and why."""
    env = gym.make("CartPole-v1", max_episode_steps=MAX_STEPS)
    curriculum = Curriculum(CATALOGUE.names, replace(CFG, max_phases=phases))
    learner = kept = Learner(np.zeros(4), np.ones(4))
    probes: Instances = {}
    reference: Score | None = None
    while proposal := curriculum.ask():
        # All randomness of a phase hangs on its number: a retry does not replay.
        rng = phase_rng(seed, proposal.phase)
        ranges = CATALOGUE.ranges(proposal.levels)
        batches = [
            sample(CATALOGUE, ranges, TRAINED_ON, rng) for _ in range(GENERATIONS)
        ]
        learner = train(env, learner, batches, rng)

        # Gate L: the candidate's physics. Gate C: the checkpoint's, on its own probes.
        fresh = sample(CATALOGUE, ranges, MEASURED_ON, rng)
        here = play(env, learner.weights, fresh)
        there = play(env, learner.weights, probes) if reference else None
        decision = curriculum.tell(
            Evidence(
                length=here.length,
                tracking_error=here.error,
                checkpoint_error=there and there.error,
                checkpoint_return=there and there.value,
                reference_error=reference and reference.error,
                reference_return=reference and reference.value,
            )
        )
        print(f"phase {proposal.phase}: {decision.reason}")
        if decision.action == "commit":
            kept, probes, reference = learner, fresh, here
        elif decision.action == "rollback":
            learner = kept
    mastered = curriculum.state.mastered
    print(
        "Mastered:",
        ", ".join(f"{name} {level:.2f}" for name, level in mastered.items()),
    )
    for name, found in CATALOGUE.ranges(mastered).items():
        print(f"  {name}: {found} {CATALOGUE.parameters[name].unit}")
    return curriculum.entries


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Widen CartPole's physics.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--phases", type=int, default=24)
    main(**vars(parser.parse_args()))
