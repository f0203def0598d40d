"""Everything a page is made of, read from files and put in numbers."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horizon_rl.evaluation.studies.study import StudiedRun, Study, study
from horizon_rl.evaluation.success import CurvePoint, find_results
from horizon_rl.policies.shipped import ModelRecord, model_names, read_model, start_of
from horizon_rl.runs.read import RunFiles, read_run
from horizon_rl.runs.summary import RunSummary
from horizon_rl.show.scores import SuiteScores, collect

if TYPE_CHECKING:  # It takes the simulator's libraries.
    from horizon_rl.evaluation.explain import Factor


@dataclass(frozen=True)
class Source:
    """A run as it was named on the command line."""

    text: str
    """Its path or name: what a command takes."""
    argument: str
    """The same as it was given, perhaps with a name: what `horizon report` takes."""
    journal: Path
    name: str
    """What it is called: runs of one name are training seeds of one method."""
    model: ModelRecord | None = None
    """The record of the shipped policy that it made."""

    @property
    def results(self) -> list[dict[str, Any]]:
        """Its evaluations that come with the package, under the name it has here."""
        known = self.model.results if self.model else ()
        return [{**result, "policy": self.name} for result in known]

    def made(self, policy: str) -> bool:
        """Say whether the policy of an evaluation is this run's, by its name or path."""
        if policy in (self.name, self.text):
            return True
        path, folder = Path(policy).resolve(), self.journal.parent.resolve()
        return policy not in model_names() and folder in (path, *path.parents)


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureMap:
    """Success of a policy by the values of what varies between scenarios."""

    policy: str
    source: str
    """Its path or name: what a command takes."""
    title: str
    """Suite, severity, column and number of scenarios, in words."""
    success: float
    factors: "tuple[Factor, ...]"
    """The most telling first."""


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """A run, read and put in numbers."""

    source: Source
    files: RunFiles
    studied: StudiedRun

    @property
    def label(self) -> str:
        return self.studied.label

    @property
    def summary(self) -> RunSummary:
        return self.files.summary


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """What there is to show."""

    runs: tuple[ReportedRun, ...]
    study: Study
    suites: tuple[SuiteScores, ...]
    maps: tuple[FailureMap, ...]
    baseline: Mapping[str, float]
    """Coverage of every group at level 0."""
    command: str
    """What made the page."""

    @property
    def title(self) -> str:
        return ", ".join(dict.fromkeys(run.files.name for run in self.runs))

    @property
    def names(self) -> list[str]:
        """Names of methods and policies, in the order that colours go by."""
        methods = [method.name for method in self.study.methods]
        curves = [curve.method for curve in self.study.curves]
        policies = [name for scores in self.suites for name in scores.policies]
        return list(dict.fromkeys([*methods, *curves, *policies]))

    @property
    def trained(self) -> list[ReportedRun]:
        """The runs that made a policy: no rehearsals."""
        return [run for run in self.runs if run.summary.kind == "training"]

    def unmeasured(self, suite: str) -> list[ReportedRun]:
        """List the runs without a result in a suite."""
        measured = {
            name
            for scores in self.suites
            if scores.suite == suite
            for name in scores.policies
        }
        return [run for run in self.trained if run.files.name not in measured]

    @property
    def unmapped(self) -> list[ReportedRun]:
        """The runs of which it is not known where they break."""
        mapped = {found.source for found in self.maps}
        return [run for run in self.trained if run.source.text not in mapped]

    def report_command(self, flags: str) -> str:
        """Write the command of the page with other flags."""
        runs = shlex.join([run.source.argument for run in self.runs])
        return f"horizon report {runs} {flags}"


def gather(
    sources: Sequence[Source],
    *,
    records: Sequence[Mapping[str, Any]] = (),
    points: Sequence[CurvePoint] = (),
    maps: Sequence[FailureMap] = (),
    command: str = "",
) -> Material:
    """Read runs, and put them beside what was measured.

    Args:
        sources: Runs to report.
        records: Evaluations, as `horizon eval --json` writes them.
        points: Success of checkpoints on the way.
        maps: Where policies break.
        command: What makes the page.
    """
    files = [
        read_run(s.journal, s.name, start=start_of(s.journal.parent)) for s in sources
    ]
    own = [*records, *(result for source in sources for result in source.results)]
    # Once each: a file and a shipped policy's record may tell the same. Of one suite that
    # runs were evaluated in: the records may be of another draw than the files.
    results = list(dict.fromkeys(find_results(own)))
    of_runs = [r for r in results if any(s.made(r.policy) for s in sources)]
    results = [r for r in results if r.suite_hash == (of_runs or results)[0].suite_hash]
    found = study(files, results, points)
    runs = tuple(map(ReportedRun, sources, files, found.runs))
    return Material(
        runs=runs,
        study=found,
        suites=collect(_by_name(own, sources), _origins(runs)),
        maps=tuple(maps),
        baseline={
            group: catalogue[group].coverage_at(0.0)
            for run in files
            if (catalogue := run.catalogue)
            for group in run.journal.header.groups
        },
        command=command,
    )


def _by_name(
    records: Sequence[Mapping[str, Any]], sources: Sequence[Source]
) -> Iterator[Mapping[str, Any]]:
    """Call policies by the name of the run that made them, so that seeds go together."""
    for record in records:
        makers = (s.name for s in sources if s.made(record["policy"]))
        yield {**record, "policy": next(makers, record["policy"])}


def _origins(runs: Sequence[ReportedRun]) -> list[dict[str, Any]]:
    """Return the results of the shipped policies that runs started from."""
    starts = [run.summary.start or "" for run in runs]
    names = dict.fromkeys(start.removeprefix("from ") for start in starts)
    return [
        {**result, "policy": name}
        for name in names
        if name in model_names()
        for result in read_model(name).results
    ]
