"""One phase: train on the candidate, look at it on the way, weigh it at the end."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from horizon_rl.curriculum import (
    Episodes,
    Evidence,
    Proposal,
    judge,
    look,
    measure,
    select_window,
)
from horizon_rl.learning import NonFiniteError
from horizon_rl.policies.learned import LearnedPolicy
from horizon_rl.task import EpisodeTable
from horizon_rl.training.probe import Prober, Reference
from horizon_rl.training.trainer import Iteration, Trainer


@dataclass(frozen=True, eq=False)
class Weighed:
    """What a phase showed: the numbers that are judged, and the episodes behind them."""

    evidence: Evidence
    window: Episodes
    """Training episodes of gate L."""
    probes: dict[str, EpisodeTable]
    """Episodes with mean actions, by set: checkpoint, candidate, anchor."""


class Phase:
    """A proposal being trained."""

    def __init__(
        self,
        trainer: Trainer,
        prober: Prober | None,
        proposal: Proposal,
        reference: Reference | None,
    ):
        self.trainer, self.proposal, self.reference = trainer, proposal, reference
        self.iterations = 0
        """Iterations done."""
        self.weighed: Weighed | None = None
        """What it showed; None while it is being trained."""
        self.probe_s = 0.0
        """Seconds that its probes took."""
        self._prober = prober
        self._probes, self._probe_steps = 0, 0
        self._gates = trainer.cfg.resolved.gates
        can_fail = proposal.kind not in ("baseline", "clock")
        self._may_roll_back = can_fail and trainer.cfg.resolved.rollback
        # A phase that ends as it must, whatever it shows, is not worth a look.
        looks = () if proposal.kind == "clock" else trainer.cfg.early.looks
        total = trainer.cfg.iterations
        after = [ceil(share * total) for share in looks]
        # A look at the end would only probe twice what is weighed there anyway.
        self._looks = {number: i for i, number in enumerate(after) if number < total}

    def train(self) -> Iterator[Iteration]:
        """Train and weigh the phase, yielding after every iteration."""
        try:
            yield from self._iterations()
        except NonFiniteError:
            # A policy that has blown up is what rollback is for.
            if not self._may_roll_back:
                raise
            self.iterations += 1  # Its update was refused, but its steps were taken.
            self.weighed = self._collapsed(_no_episodes())
        if self.weighed is None:
            self.weighed = self._weigh(self._window())

    def _iterations(self) -> Iterator[Iteration]:
        proposal = self.proposal
        for iteration in self.trainer.run_phase(proposal.phase, proposal.levels):
            self.iterations += 1
            yield iteration
            if self.iterations in self._looks:
                self.weighed = self._look(self._looks[self.iterations])
            if self.weighed:
                return

    def _look(self, index: int) -> Weighed | None:
        """Look at the running phase; weigh it where that settles it."""
        cfg, window = self.trainer.cfg, self._window()
        seen = look(
            window,
            index,
            max_length=cfg.task.max_steps,
            gates=self._gates,
            cfg=cfg.early,
        )
        if seen == "abort" and self._may_roll_back:
            return self._collapsed(window)
        if seen == "commit":
            weighed = self._weigh(window)
            preservation = self._gates.preservation and self.reference is not None
            verdict = judge(weighed.evidence, self._gates, preservation=preservation)
            return weighed if verdict.passed else None
        return None

    def _collapsed(self, window: Episodes) -> Weighed:
        """Give up on the phase: what it showed so far is all there will be."""
        return Weighed(self._evidence(window, aborted=True), window, {})

    def _weigh(self, window: Episodes) -> Weighed:
        """Measure the policy on the probe's scenarios, and put all numbers together."""
        began = time.perf_counter()
        probes = self.trainer.ranks.once(self._probe)
        self.probe_s += time.perf_counter() - began
        steps = sum(int(episodes.length.sum()) for episodes in probes.values())
        self._probes += bool(probes)
        self._probe_steps += steps
        self.trainer.env_steps += steps
        figures: dict[str, float | None] = {}
        for name, episodes in probes.items():
            figures[f"{name}_error"] = _mean(episodes.tracking_error)
            figures[f"{name}_return"] = _mean(episodes.returns)
        if self.reference:
            figures["reference_error"] = self.reference.error
            figures["reference_return"] = self.reference.value
        return Weighed(self._evidence(window, figures), window, probes)

    def _evidence(
        self,
        window: Episodes,
        figures: dict[str, float | None] | None = None,
        *,
        aborted: bool = False,
    ) -> Evidence:
        trainer = self.trainer
        length, error = measure(window, max_length=trainer.cfg.task.max_steps)
        trained = self.iterations * trainer.steps_per_iteration
        return Evidence(
            length=length,
            tracking_error=error,
            **(figures or {}),
            episodes=len(window),
            iterations=self.iterations,
            probes=self._probes,
            env_steps=trained + self._probe_steps,
            aborted=aborted,
        )

    def _probe(self) -> dict[str, EpisodeTable]:
        if self._prober is None:
            return {}
        return self._prober.run(
            LearnedPolicy(self.trainer.learner.actor),
            phase=self.proposal.phase,
            levels=self.proposal.levels,
            mastered=self.proposal.mastered,
            reference=self.reference,
        )

    def _window(self) -> Episodes:
        """Choose what gate L may judge from the episodes of all ranks."""
        trainer = self.trainer
        found = trainer.env.episodes.table()
        parts = trainer.ranks.gather((found.start, found.length, found.tracking_error))
        start, length, error = map(np.concatenate, zip(*parts, strict=True))
        return select_window(
            Episodes(start, length, error),
            phase_steps=self.iterations * trainer.cfg.learner.ppo.num_steps,
            max_length=trainer.cfg.task.max_steps,
            window=trainer.cfg.window,
        )


def _no_episodes() -> Episodes:
    return Episodes(np.zeros(0), np.zeros(0), np.zeros(0))


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64))
