"""The one loop: ask, train, look, probe, decide, save, record.

It sees protocols only, and needs no more than numpy: our simulator, the rehearsal's
synthetic learner, Gymnasium and mjlab all train in it.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import fields, replace
from math import ceil
from time import perf_counter

import numpy as np

from horizon_rl.curriculum import (
    Curriculum,
    Entry,
    Episodes,
    Evidence,
    ProbeSet,
    measure,
)
from horizon_rl.curriculum.evidence import (
    ProbedEpisodes,
    fair_episodes,
    last_episodes,
    outcomes_of,
    standard_error,
)
from horizon_rl.runs.directory import PhaseTimes
from horizon_rl.support.errors import NonFiniteError
from horizon_rl.training.protocols import (
    Iteration,
    Learner,
    PhaseResult,
    Recorder,
    Worlds,
)

NO_EPISODES = Episodes(np.zeros(0), np.zeros(0), np.zeros(0))


def run_phases(
    curriculum: Curriculum,
    worlds: Worlds,
    learner: Learner,
    *,
    iterations: int = 1,
    window: int = 500,
    recorder: Recorder | None = None,
) -> Iterator[Iteration | Entry]:
    """Train phase after phase; yields every iteration, and every judged phase.

    A caller that stops in mid-phase loses only that phase: it was not judged.

    Args:
        curriculum: Says what to train, and what becomes of it.
        worlds: Where to train.
        learner: What learns.
        iterations: Usual length of a phase; the curriculum's looks are shares of it.
        window: Gate L: the phase's last episodes that it judges.
        recorder: Keeps what happens on disk; without it, nothing is kept.
    """
    recorder = recorder or Recorder()
    commit = recorder.last_commit()
    while (proposal := curriculum.ask()) and recorder.has_budget():
        began = perf_counter()
        # A phase that is held goes on from its own weights, but fails as a whole.
        commit = learner.snapshot() if commit is None else commit
        for following in curriculum.outlook():
            worlds.prepare(following.phase, following.distribution)
        phase = PhaseTraining(
            curriculum, worlds, learner, iterations, window, recorder.progress
        )
        for iteration in phase.train():
            recorder.record_iteration(proposal.phase, iteration)
            yield iteration
        trained, result = perf_counter(), phase.result
        recorder.record_evidence(proposal.phase, result)
        after, decision = curriculum.preview(result.evidence)
        kept = recorder.save(proposal, after) if decision.keeps_weights else None
        curriculum.tell(result.evidence, kept)
        if not decision.keeps_weights:
            learner.restore(commit)
        if decision.action != "hold":
            commit = None
        times = PhaseTimes(
            phase=proposal.phase,
            train_s=trained - began - result.probe_s,
            probe_s=result.probe_s,
            settle_s=perf_counter() - trained,
        )
        recorder.record_times(times)
        yield curriculum.entries[-1]


class PhaseTraining:
    """The phase on trial while it is trained, looked at and measured."""

    result: PhaseResult
    """What it showed; there once `train` has ended."""

    def __init__(
        self,
        curriculum: Curriculum,
        worlds: Worlds,
        learner: Learner,
        iterations: int,
        window: int,
        progress: Callable[[int], float | None],
    ):
        self._curriculum, self._worlds, self._learner = curriculum, worlds, learner
        self._window, self._progress = window, progress
        ends = [ceil(share * iterations) for share in curriculum.looks()]
        self._length = ends[-1]
        self._looks = {end: index for index, end in enumerate(ends)}
        self._iterations = self._probes = self._probe_steps = 0
        self._unhealthy = self._overflow = 0
        self._probe_s = 0.0
        self._reference: Mapping[str, ProbedEpisodes] = {}

    def train(self) -> Generator[Iteration, None, None]:
        """Train until a look or the usual length ends the phase."""
        state, proposal = self._curriculum.state, self._curriculum.ask()
        assert proposal is not None
        self._measure_reference()
        self._worlds.begin(proposal.phase, proposal.distribution)
        self._learner.begin(self._worlds)
        if 0 in self._looks and self._look():
            return  # It can do all this already.
        while True:
            self._iterations += 1
            try:
                iteration = self._learner.iterate(self._worlds)
            except NonFiniteError:
                # A policy that has diverged is what rollback is for.
                self.result = self._conclude(NO_EPISODES, {}, aborted=True)
                if self._curriculum.decide(self.result.evidence).keeps_weights:
                    raise
                return
            self._unhealthy += iteration.unhealthy
            self._overflow += iteration.overflow
            yield replace(
                iteration,
                number=state.iterations + self._iterations,
                env_steps=state.env_steps + self._env_steps,
                unhealthy=self._unhealthy,
                overflow=self._overflow,
            )
            if self._iterations in self._looks and self._look():
                return

    def _look(self) -> bool:
        """Look at the phase; tell whether it has ended, with its result."""
        curriculum, longest = self._curriculum, self._worlds.max_length
        fair = NO_EPISODES
        if self._iterations:
            # Before any probe, which may take place in the same worlds.
            fair = fair_episodes(
                self._worlds.episodes(curriculum.method.outcome_parameters),
                phase_steps=self._iterations * self._learner.num_steps,
                max_length=longest,
            )
        at_end, seen = self._iterations == self._length, "judge"
        if not at_end:
            window = last_episodes(fair, self._window)
            seen = curriculum.look(window, self._looks[self._iterations], longest)
        if seen == "go on":
            return False
        probes = self._probe(curriculum.state.probes) if seen == "judge" else {}
        self.result = self._conclude(fair, probes, aborted=seen == "abort")
        if at_end or seen == "abort":
            return True
        # Gate C may still fail at an early look: then training goes on.
        return curriculum.decide(self.result.evidence).verdict.passed

    def _measure_reference(self) -> None:
        """Measure the last commit now, where it was not when it was committed."""
        state = self._curriculum.state
        if state.reference and state.reference.error is None:
            self._reference = self._probe({"reference": state.probes["checkpoint"]})

    def _probe(self, sets: Mapping[str, ProbeSet]) -> Mapping[str, ProbedEpisodes]:
        began = perf_counter()
        probes = self._worlds.probe(self._learner.policy, sets)
        self._probe_s += perf_counter() - began
        self._probes += bool(probes)
        self._probe_steps += sum(int(p.length.sum()) for p in probes.values())
        self._unhealthy += sum(p.unhealthy for p in probes.values())
        self._overflow += sum(p.overflow for p in probes.values())
        return probes

    @property
    def _env_steps(self) -> int:
        trained = self._iterations * self._learner.steps_per_iteration
        return trained + self._probe_steps

    def _conclude(
        self, fair: Episodes, probes: Mapping[str, ProbedEpisodes], *, aborted: bool
    ) -> PhaseResult:
        """Put together all numbers that the phase is judged by."""
        longest, window = self._worlds.max_length, last_episodes(fair, self._window)
        length, error = measure(window, max_length=longest)
        probes = {**self._reference, **probes} if probes else probes
        means = _means(probes, longest)
        if self._iterations == 0:
            # Before any training, the probe stands in for training episodes.
            length, error = means.get("candidate_length"), means.get("candidate_error")
        known = {field.name for field in fields(Evidence)}
        single = self._curriculum.method.outcome_parameters is not None
        evidence = Evidence(
            length=length,
            tracking_error=error,
            length_se=standard_error(window.length / longest),
            error_se=standard_error(window.tracking_error),
            **{name: v for name, v in means.items() if name in known},  # pyright: ignore[reportArgumentType]
            episodes=len(window),
            iterations=self._iterations,
            probes=self._probes,
            env_steps=self._env_steps,
            unhealthy=self._unhealthy,
            overflow=self._overflow,
            progress=self._progress(self._curriculum.state.env_steps + self._env_steps),
            aborted=aborted,
            probed={name: v for name, v in means.items() if name not in known},
            outcomes=outcomes_of(fair, max_length=longest) if single else None,
        )
        return PhaseResult(evidence, window, probes, self._probe_s)


def _means(probes: Mapping[str, ProbedEpisodes], max_length: int) -> dict[str, float]:
    """Return the means over each probe set, under their names in the evidence."""
    figures: dict[str, np.ndarray] = {}
    for name, found in probes.items():
        figures[f"{name}_length"] = found.length / max_length
        figures[f"{name}_error"] = found.tracking_error
        figures[f"{name}_return"] = found.returns
        for size in () if found.size is None else np.unique(found.size):
            of_size = found.tracking_error[found.size == size]
            figures[f"{name}_error:{size}"] = of_size
    return {name: float(np.mean(v, dtype=np.float64)) for name, v in figures.items()}
