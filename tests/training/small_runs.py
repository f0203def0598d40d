"""Runs small enough for tests: phases of a tenth of a second."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch

from horizon_rl.curriculum import CurriculumCfg, Entry, GateCfg, LeapCfg
from horizon_rl.domains import Catalogue, parse_catalogue
from horizon_rl.domains.distribution import Distribution
from horizon_rl.learning import (
    CriticCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    TransformerCfg,
    state_tensors,
)
from horizon_rl.runs.paths import EVIDENCE, JOURNAL, phase_name
from horizon_rl.task import TaskCfg
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.run import Run


def read_evidence(path: Path, phase: int) -> dict[str, np.ndarray]:
    """Read the episodes that a phase was judged by."""
    with np.load(path / EVIDENCE / f"{phase_name(phase)}.npz") as file:
        return dict(file)


ACTORS = {
    "mlp": MlpCfg(hidden_dims=(16,)),
    "transformer": TransformerCfg(
        embedding_dim=16, num_heads=2, feedforward_dim=32, window=7
    ),
}
ACTORS["symmetric"] = replace(ACTORS["transformer"], symmetric=True)
LENIENT = GateCfg(min_length=0.0, max_error=1e9, error_margin=1e9, return_margin=1e9)
"""Every phase passes."""
CALM = replace(LENIENT, max_error=5.0)
"""Every phase passes that is not blown away."""
STORM = parse_catalogue("""
extends = "paper"

[groups.disturbance.parameters.external_force]
limit = [-20000.0, 20000.0]
""")
"""The paper's groups, but `disturbance` blows the robot away at any level that counts."""
GALE = parse_catalogue("""
extends = "paper"

[groups.disturbance.parameters.external_force]
limit = [-3000.0, 3000.0]
""")
"""The same, but less than the whole of it can be borne."""
CRITIC = CriticCfg(hidden_dims=(16,), encoder_dim=4)
PPO = PpoCfg(num_steps=5, num_epochs=1, num_minibatches=2)
WORLDS, ITERATIONS = 8, 4
"""Of a phase, which is two and a half of the longest episodes of 8 steps."""
PHASE_STEPS = WORLDS * ITERATIONS * PPO.num_steps
"""Environment steps of its training."""


def tiny(
    policy: str = "mlp", *, gates: GateCfg = LENIENT, max_phases: int = 3, **changes
) -> TrainCfg:
    """Return settings of three phases of four iterations, in the groups mass and com.

    By the paper's rule, whose levels are known beforehand.

    Fields of the curriculum's settings may be among the changes.
    """
    names = {field.name for field in fields(CurriculumCfg)}
    inner = {name: changes.pop(name) for name in names & changes.keys()}
    cfg = TrainCfg(
        method="paper",
        groups="mass,com",
        num_envs=WORLDS,
        phase_iterations=1,
        window=16,
        probe_scenarios=8,
        anchor_scenarios=4,
        curriculum=CurriculumCfg(gates=gates, max_phases=max_phases, **inner),
        task=TaskCfg(episode_s=0.16),
        learner=LearnerCfg(actor=ACTORS[policy], critic=CRITIC, ppo=PPO),
    )
    return replace(cfg, **changes)


def stormy(**changes) -> TrainCfg:
    """Return settings of a run that commits and rolls back in turn."""
    settings = {"groups": "disturbance,com", "gates": CALM, "min_step": 0.5}
    return tiny(**{**settings, "max_phases": 5, **changes})


def leaping(**changes) -> TrainCfg:
    """Return settings of a run by HORIZON that leaps to level 1 and gets there in part.

    Worlds start staggered, and the weight of the entropy falls from the start.
    """
    leap = LeapCfg(ready=0.0, rungs=(0.5, 1.0), patience=2, recovery=0.5)
    # Errors of few episodes are large, and so is the tracking error of a gale.
    leap = replace(leap, margin=1e9, anchor_margin=1e9, sigmas=0.0, weigh_error=False)
    ppo = replace(PPO, final_entropy_coef=0.0, anneal_from=0.0)
    settings = {"method": "horizon", "groups": "disturbance", "gates": CALM}
    settings |= {"max_phases": 6, "scout_scenarios": 4, "leap": leap}
    settings |= {"stagger": True, "steps": 6000}
    settings["learner"] = LearnerCfg(actor=ACTORS["mlp"], critic=CRITIC, ppo=ppo)
    return tiny(**{**settings, **changes})


STORMY_ACTIONS = ["commit", "rollback", "commit", "rollback", "commit"]


def create(cfg: TrainCfg, path: Path, catalogue: Catalogue = STORM, **options) -> Run:
    return Run.create(cfg, catalogue, path, "cpu", **options)


def resume(path: Path, **budget) -> Run:
    return Run.resume(path, device="cpu", **budget)


def finish(run: Run) -> list[Entry]:
    """Run to the end; return the phases judged on the way."""
    entries = [event for event in run.events() if isinstance(event, Entry)]
    run.close()
    return entries


def run_phases(run: Run, count: int) -> list[Entry]:
    """Run this many phases and leave it there."""
    entries = []
    for event in run.events():
        if isinstance(event, Entry):
            entries.append(event)
            if len(entries) == count:
                break
    run.close()
    return entries


def actions(entries: Sequence[Entry]) -> list[str]:
    return [entry.decision.action for entry in entries]


def levels(entries: Sequence[Entry]) -> list[dict[str, float]]:
    return [entry.proposal.levels for entry in entries]


def journal(path: Path) -> bytes:
    return (path / JOURNAL).read_bytes()


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in state_tensors(run.learner.algorithm).items()}


def poison(run: Run, *, phase: int, iteration: int = 2) -> None:
    """Let one reward of an iteration of that phase be no number."""
    worlds, begin, step, now = run.worlds, run.worlds.begin, run.worlds.step, {}

    def begin_and_count(phase: int, distribution: Distribution) -> None:
        now.update(phase=phase, steps=0)
        begin(phase, distribution)

    def step_and_poison(actions):
        observations, reward, done, extras = step(actions)
        here = now["phase"], now["steps"] // run.learner.num_steps
        if here == (phase, iteration):
            reward[2] = float("nan")
        now["steps"] += 1
        return observations, reward, done, extras

    worlds.begin, worlds.step = begin_and_count, step_and_poison


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name
