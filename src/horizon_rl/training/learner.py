"""A learning algorithm in our worlds: what collects, learns, and is saved."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from horizon_rl.curriculum import State
from horizon_rl.domains import Catalogue
from horizon_rl.learning import (
    Actor,
    Adversarial,
    Scoring,
    build_learner,
    load_state_tensors,
    restore,
    state_tensors,
    take_snapshot,
)
from horizon_rl.learning.checkpoint import CheckpointRecord, fill_checkpoint
from horizon_rl.physics import cores_for_physics
from horizon_rl.policies.learned import LearnedPolicy, read_checkpoint
from horizon_rl.support.errors import blame
from horizon_rl.support.records import decode, encode
from horizon_rl.support.timers import LapTimer
from horizon_rl.task import NUM_ACTIONS
from horizon_rl.task.mirror import swap_instance
from horizon_rl.training.config import fixed_levels
from horizon_rl.training.protocols import Iteration, Learner
from horizon_rl.training.transfer import fit_catalogue, let_adapt, let_see
from horizon_rl.training.worlds import SimulatedWorlds

RECENT = 100
"""Episodes that an iteration's figures are the mean of: the last ones."""


class TorchLearner(Learner):
    """An algorithm of `horizon_rl.learning`; of several ranks, each has one."""

    def __init__(
        self,
        worlds: SimulatedWorlds,
        catalogue: Catalogue,
        teachers: Sequence[Actor] = (),
    ):
        """Build networks for the worlds' observations; torch's seed sets the weights."""
        cfg, device = worlds.cfg, worlds.env.device
        self.cfg, self.catalogue, self.ranks = cfg, catalogue, worlds.ranks
        self.algorithm = build_learner(
            worlds.observations,
            NUM_ACTIONS,
            cfg.num_envs,
            cfg.learner,
            device,
            worlds.ranks,
            teachers,
            partial(swap_instance, catalogue),
        )
        self.num_steps = self.algorithm.num_steps
        self.steps_per_iteration = self.ranks.size * cfg.num_envs * self.num_steps

    @property
    def policy(self) -> LearnedPolicy:
        return LearnedPolicy(self.algorithm.actor)

    def begin(self, worlds: SimulatedWorlds) -> None:
        self.algorithm.forget()

    def iterate(self, worlds: SimulatedWorlds) -> Iteration:
        algorithm, env = self.algorithm, worlds.env
        adversary = algorithm if isinstance(algorithm, Adversarial) else None
        timer = LapTimer(env.device)
        total = torch.zeros((), device=env.device)
        before = astuple(env.backend.counters)
        with torch.no_grad(), cores_for_physics(env.backend):
            for _ in range(self.num_steps):
                actions = algorithm.act(worlds.observations)
                if adversary and adversary.pushes is not None:
                    env.backend.push(adversary.pushes)
                observations, reward, done, extras = worlds.step(actions)
                algorithm.process_env_step(observations, reward, done, extras)
                total += reward.mean()
            algorithm.compute_returns(worlds.observations)
            if worlds.scores:
                assert isinstance(algorithm, Scoring)  # As `Run` has checked.
                worlds.scores.add(algorithm.value_losses())
        timer.mark()
        figures = algorithm.update()
        timer.mark()
        num_ended, length, error = env.episodes.recent(RECENT)
        shown = torch.stack((total, num_ended, num_ended * length, num_ended * error))
        # In whole numbers: the totals of a long run are too large for single floats.
        after = torch.tensor(astuple(env.backend.counters))
        shown = torch.cat((shown, (after - torch.tensor(before)).to(shown)))
        self.ranks.average(shown)
        reward, num_ended, length, error, *broken = shown.tolist()
        unhealthy, overflow = (round(self.ranks.size * count) for count in broken)
        collect_s, learn_s = timer.seconds()
        return Iteration(
            collect_s=collect_s,
            learn_s=learn_s,
            reward=reward / self.num_steps,
            episode_length=length / num_ended / worlds.max_length
            if num_ended
            else None,
            tracking_error=error / num_ended if num_ended else None,
            unhealthy=unhealthy,
            overflow=overflow,
            figures=figures,
        )

    def snapshot(self) -> Any:
        return take_snapshot(self.algorithm)

    def restore(self, snapshot: Any) -> None:
        """Bring back a snapshot exactly; then cut the rate, if that is asked for."""
        restore(self.algorithm, snapshot)
        self.cut_rate()

    def cut_rate(self, times: int = 1) -> None:
        """Lower the learning rate as after this many rollbacks."""
        for _ in range(times):  # One by one: a power would round otherwise.
            self.algorithm.learning_rate *= self.cfg.rollback_rate

    def write(self, folder: Path, state: State, levels: dict[str, float]) -> None:
        """Fill a checkpoint's folder.

        Args:
            folder: An empty directory.
            state: The curriculum as it is once the phase is on record, for the counters.
            levels: Of the groups that the run widens, in the ranges it was trained on.
        """
        cfg = self.cfg
        record = CheckpointRecord(
            numbers={"learning_rate": self.algorithm.learning_rate},
            counters={
                "iteration": state.iterations,
                "ranks": self.ranks.size,
                "phase": state.phase,
                "env_steps": state.env_steps,
            },
            seed=cfg.seed,
            # Without its budget, which a resumed run may change.
            config=encode(replace(cfg, steps=0, minutes=0.0)),
            catalogue=encode(self.catalogue),
            levels={**fixed_levels(cfg, self.catalogue), **levels},
        )
        fill_checkpoint(folder, state_tensors(self.algorithm), record)

    def load(self, folder: Path, *, refit: bool = False) -> CheckpointRecord:
        """Take over what a checkpoint has learnt; its counters are in the record.

        With `refit`, its catalogue may have other parameters than the run's, and an
        oracle, or GRAM, may take over from a policy that sees none.
        """
        checkpoint = read_checkpoint(folder)
        tensors = checkpoint.tensors
        with blame(f"{folder} is of another policy"):
            if refit:
                theirs = decode(Catalogue, checkpoint.record.catalogue)
                tensors = fit_catalogue(tensors, theirs, self.catalogue)
                tensors = let_see(tensors, state_tensors(self.algorithm))
                tensors = let_adapt(tensors, state_tensors(self.algorithm))
            load_state_tensors(self.algorithm, tensors)
        return checkpoint.record

    def follow_rank_0(self) -> None:
        """Start from what rank 0 has learnt."""
        algorithm = self.algorithm
        algorithm.learning_rate = self.ranks.once(lambda: algorithm.learning_rate)
        self.ranks.share(state_tensors(algorithm).values())

    def check_ranks(self) -> None:
        """Refuse to go on where ranks have learnt different things."""
        rate = torch.tensor(self.algorithm.learning_rate, dtype=torch.float64)
        tensors = {**state_tensors(self.algorithm), "learning_rate": rate}
        self.ranks.check_same(tensors)
