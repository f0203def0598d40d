"""Sections that evaluations fill, or that say which command would fill them."""

import shlex
from collections.abc import Iterator, Sequence

from horizon_rl.evaluation.statistics import Interval, spread_by_column
from horizon_rl.evaluation.success import SEVERITY, SUITE
from horizon_rl.show.report.blocks import Block, Drawing, Missing, Prose, Section, slug
from horizon_rl.show.report.figures import suite_figure
from horizon_rl.show.report.gather import Material, ReportedRun
from horizon_rl.show.report.scores import Score, SuiteScores
from horizon_rl.show.table import NONE, Cells

INTERVENTIONS = "interventions"


def ood_section(material: Material) -> Section:
    """Success in physics beyond what was trained in."""
    blocks = [
        b for s in material.suites if s.suite == SUITE for b in _suite(material, s)
    ]
    lacking = _lacking(material, SUITE, SEVERITY)
    return Section(
        id="ood",
        title="Out of distribution",
        intro="Success on frozen scenarios with one group, and with all of them, shifted "
        "toward their limits. `stand` holds the default pose: the floor.",
        blocks=(
            *blocks,
            *_ask(material, lacking, f"--severity {SEVERITY:g} --json ood.json"),
        ),
    )


def interventions_section(material: Material) -> Section:
    """Success on bodies that were tampered with."""
    found = [s for s in material.suites if s.suite == INTERVENTIONS]
    blocks = [b for scores in found for b in _suite(material, scores)]
    lacking = _lacking(material, INTERVENTIONS, None)
    flags = "--suite interventions --json interventions.json"
    return Section(
        id="interventions",
        title="Interventions",
        intro="Locked knees, stilts and hanging payloads on Go2.",
        blocks=(*blocks, *_ask(material, lacking, flags)),
    )


def other_section(material: Material) -> Section | None:
    """Whatever other suites there are results of."""
    mine = (SUITE, INTERVENTIONS)
    others = [s for s in material.suites if s.suite not in mine]
    blocks = tuple(b for scores in others for b in _suite(material, scores))
    return Section(id="suites", title="Other suites", blocks=blocks) if blocks else None


def _suite(material: Material, scores: SuiteScores) -> Iterator[Block]:
    level = "" if scores.severity is None else f"-{scores.severity:g}"
    yield Drawing(
        name=slug(f"{scores.suite}{level}-{scores.digest[:6]}"),
        about=f"Success by column in {scores.title}, with 95 % intervals or the range of "
        "the seeds",
        figure=suite_figure(scores, material.names),
    )
    yield suite_table(scores)


def suite_table(scores: SuiteScores) -> Cells:
    """Lay out success, %, of every policy by column, with the floor."""
    extras = [
        what
        for what in ("stand", "impossible")
        if any(scores.about(column, what) for column in scores.columns)
    ]
    rows = tuple(
        (
            column,
            *(_success(scores.of(name, column)) for name in scores.policies),
            *(_percent(scores.about(column, what)) for what in extras),
        )
        for column in scores.columns
    )
    sizes = {
        name: sorted({s[c].episodes for s in seeds for c in s})
        for name, seeds in scores.policies.items()
    }
    told = "; ".join(f"{k}: {', '.join(map(str, v))}" for k, v in sizes.items())
    return Cells(
        f"Success, %, in {scores.title}",
        ("column", *scores.policies, *extras),
        rows,
        (
            f"Scenarios a column: {told}. Suite {scores.digest[:12]}.",
            "In brackets the 95 % interval of one checkpoint; ± is over training seeds.",
        ),
    )


def _success(seeds: Sequence[Score]) -> str:
    if not seeds:
        return NONE
    if len(seeds) > 1:
        return str(spread_by_column([[s.success] for s in seeds])[0])
    return f"{100.0 * seeds[0].success:.1f}{_bounds(seeds[0].interval)}"


def _bounds(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" ({100.0 * interval.low:.0f}..{100.0 * interval.high:.0f})"


def failures_section(material: Material) -> Section:
    """Where policies break."""
    blocks: list[Block] = []
    for found in material.maps:
        blocks.append(
            Prose(f"{found.policy}: {found.success:.1%} success, {found.title}.")
        )
        if not found.factors:
            blocks.append(Prose("No quantity separates failures from successes."))
            continue
        from horizon_rl.show.failure_figure import failure_figure

        blocks.append(
            Drawing(
                name=slug(f"failures-{found.source}"),
                about=f"Success by value of the quantities that separate failures from "
                f"successes, {found.policy}",
                figure=failure_figure("", found.factors),
            )
        )
    mapped = {found.source for found in material.maps}
    lacking = [run for run in _trained(material) if run.source.text not in mapped]
    flags = f"--severity {SEVERITY:g} --explain all"
    return Section(
        id="failures",
        title="Where it breaks",
        blocks=(*blocks, *_ask(material, lacking, flags, then=False)),
    )


def _lacking(
    material: Material, suite: str, severity: float | None
) -> list[ReportedRun]:
    """List the runs without a result in a suite."""
    there = {
        name
        for scores in material.suites
        if (scores.suite, scores.severity) == (suite, severity)
        for name in scores.policies
    }
    return [run for run in _trained(material) if run.files.name not in there]


def _trained(material: Material) -> list[ReportedRun]:
    """Return the runs that made a policy: no rehearsals."""
    return [run for run in material.runs if run.read.summary.kind == "training"]


def _ask(
    material: Material, lacking: Sequence[ReportedRun], flags: str, *, then: bool = True
) -> Iterator[Block]:
    """Say which commands would bring what some runs lack."""
    if not _trained(material):
        yield Prose("No run here has a policy to evaluate.")
    if not lacking:
        return
    policies = [shlex.quote(run.source.text) for run in lacking]
    if then:
        file = flags.rpartition(" ")[2]
        commands = [
            f"horizon eval {' '.join(policies)} {flags}",
            report_command(material, f"--results {file}"),
        ]
    else:  # An explanation is of one policy.
        commands = [f"horizon eval {policy} {flags}" for policy in policies]
    labels = ", ".join(run.label for run in lacking)
    yield Missing(
        what=f"Not at hand for {labels}. Measure it, or let `horizon report` do so with "
        "`--evaluate 256`:",
        commands=tuple(commands),
    )


def report_command(material: Material, flags: str) -> str:
    """Write the command of the page with other flags."""
    sources = [run.source for run in material.runs]
    runs = shlex.join([source.argument for source in sources])
    return f"horizon report {runs} {flags}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100.0 * share:.1f}"
