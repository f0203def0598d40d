"""`horizon eval`: success under exactly specified, frozen physics."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from horizon_rl.cli.common import (
    Terminal,
    check_outputs,
    read_catalogue,
    say,
    split_name,
    warn_of_pose,
    write_json,
)
from horizon_rl.cli.eval_flags import EvalCmd
from horizon_rl.cli.progress import show_progress
from horizon_rl.support.errors import InputError, needs_extra, require, unknown
from horizon_rl.support.folders import cache_folder

with needs_extra("train"):
    from horizon_rl.evaluation.array_cache import ArrayCache
    from horizon_rl.evaluation.curve import curve_suite
    from horizon_rl.evaluation.evaluate import Evaluation, Evaluator
    from horizon_rl.evaluation.explain import Factor, explain
    from horizon_rl.evaluation.results import evaluate_suite
    from horizon_rl.evaluation.suite import Suite
    from horizon_rl.evaluation.suite_file import load_suite
    from horizon_rl.policies.load import ACCEPTED, EvaluatedPolicy, load_policy
    from horizon_rl.policies.shipped import STAND
    from horizon_rl.show.curve_table import curve_figure, curve_table
    from horizon_rl.show.evaluation_tables import (
        comparison_table,
        factors_table,
        failures_table,
    )
    from horizon_rl.show.numbers import show_duration
    from horizon_rl.show.plotting import save_figure
    from horizon_rl.show.scores import (
        describe_suite,
        policy_table,
        score_suite,
        suite_table,
        tracking_table,
    )
    from horizon_rl.show.table import Table


def run(cmd: EvalCmd) -> None:
    suites = load_suites(cmd)
    check(cmd, suites)
    policies = [
        load_policy(source, name or source)
        for name, source in map(split_name, cmd.policies)
    ]
    seeds = [(policy.name, policy.digest) for policy in policies if policy.digest]
    for name, digest in seeds:
        # One policy as two seeds of a method would seem to have no spread.
        if seeds.count((name, digest)) > 1:
            raise InputError(
                f"'{name}' is the same policy twice, not two training seeds"
            )
    cache = ArrayCache(None if cmd.fresh else cache_folder())
    evaluator = Evaluator(cache, cmd.device, cmd.threads)
    warn_of_pose(cmd.robot, cmd.policies)
    _announce(cmd, evaluator, policies, suites)
    results: list[dict[str, Any]] = []
    console = Terminal()
    for suite in suites:
        with show_progress(len(policies) + cmd.stand) as show:
            evaluations, records = evaluate_suite(
                *(evaluator, policies, suite, cmd.episodes, show), with_floor=cmd.stand
            )
        results += records
        tables, factors = _tables(records, evaluations), ()
        if cmd.explain:
            won = evaluations[0].won(cmd.explain)
            factors = explain(suite.frozen[cmd.explain], won)
            tables += [
                factors_table(cmd.explain, factors),
                failures_table(evaluations[0], cmd.explain, factors),
            ]
        if suite.about and not cmd.markdown:
            console.print(suite.about, style="dim")
        console.print_tables(tables, markdown=cmd.markdown)
        if cmd.figures:
            cmd.figures.mkdir(parents=True, exist_ok=True)
            if cmd.explain:
                _draw_factors(evaluations[0], cmd.explain, factors, cmd.figures)
            if cmd.curve:
                figure = curve_figure(_by_method(evaluations))
                for path in save_figure(figure, cmd.figures / f"curve-{suite.draw}"):
                    say(f"drawn in {path}")
    if cmd.json:
        write_json(cmd.json, results[0] if len(results) == 1 else results, "results")


def load_suites(cmd: EvalCmd) -> list[Suite]:
    catalogue = read_catalogue(cmd.catalogue) if cmd.catalogue else None
    if cmd.curve:
        if cmd.severity or cmd.columns or cmd.suite != EvalCmd.suite:
            raise InputError(
                "--curve is a suite of its own: no --suite, no --severity, no --columns"
            )
        return [curve_suite(cmd.curve_groups, cmd.robot, catalogue, cmd.draw)]
    if cmd.curve_groups != EvalCmd.curve_groups:
        raise InputError("--curve-groups are those of --curve: add it")
    found = [
        load_suite(cmd.suite, severity, cmd.robot, catalogue, cmd.draw)
        for severity in cmd.severity or (None,)
    ]
    if names := [name for text in cmd.columns for name in text.split(",")]:
        return [suite.choose(names) for suite in found]
    # A column to explain is meant by its name.
    return found if cmd.explain else list(map(_drop_alike, found))


def _drop_alike(suite: Suite) -> Suite:
    """Keep one column where severity 0 shifts nothing and leaves several alike."""
    names = list(suite.distinct.values())
    if suite.severity != 0.0 or len(names) == len(suite.frozen):
        return suite
    alike = ", ".join(name for name in suite.frozen if name not in names)
    about = f"{suite.about}. Severity 0 shifts nothing: {alike} would be as {names[0]}"
    return replace(suite.choose(names), about=about)


def _announce(
    cmd: EvalCmd,
    evaluator: Evaluator,
    policies: Sequence[EvaluatedPolicy],
    suites: Sequence[Suite],
) -> None:
    """Say how long it will take, unless it comes from disk."""
    floor = [load_policy(STAND)] if cmd.stand else []
    seconds = sum(
        evaluator.estimate(policy, suite, cmd.episodes)
        for suite in suites
        for policy in [*policies, *floor]
    )
    if seconds:
        columns = sum(len(suite.distinct) for suite in suites)
        episodes = cmd.episodes or suites[0].num_episodes
        names = ", ".join(policy.name for policy in [*policies, *floor])
        say(
            f"{names}: {columns} column{'s' * (columns > 1)} of {episodes} episodes, "
            f"up to {show_duration(seconds)}",
            file=sys.stderr,
        )


def check(cmd: EvalCmd, suites: Sequence[Suite]) -> None:
    """Refuse what cannot end well before the long work begins."""
    if not cmd.policies:
        raise InputError(f"name at least one policy: {ACCEPTED}")
    suite = suites[0]
    if cmd.episodes is not None:
        require("--episodes", cmd.episodes, 1, suite.num_episodes, whole=True)
    if cmd.explain:
        names = list(suite.frozen)
        if cmd.explain not in names:
            raise InputError(unknown("column", cmd.explain, names))
        if len(cmd.policies) > 1:
            raise InputError("--explain explains one policy: name only one")
    elif cmd.figures and not cmd.curve:
        raise InputError("--figures draws --curve, or what --explain COLUMN finds")
    check_outputs(cmd.figures, cmd.json)


def _tables(
    records: Sequence[dict[str, Any]], evaluations: Sequence[Evaluation]
) -> list[Table]:
    """Lay out the results of one suite, those of a curve by severity."""
    methods, scores = _by_method(evaluations), score_suite(records)
    is_curve = bool(evaluations[0].suite.curves)
    first = curve_table(methods) if is_curve else suite_table(scores, intervals=False)
    if len(records) == 1:
        return [*[first] * is_curve, policy_table(records[0])]
    compared = len(methods) > 1 and not is_curve
    last = [comparison_table(methods)] if compared else []
    return [first, tracking_table(scores), *last]


def _by_method(evaluations: Sequence[Evaluation]) -> dict[str, list[Evaluation]]:
    """Put policies of one name together: training seeds of one method."""
    methods: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        methods.setdefault(evaluation.policy.name, []).append(evaluation)
    return methods


def _draw_factors(
    evaluation: Evaluation, column: str, factors: Sequence[Factor], folder: Path
) -> None:
    from horizon_rl.show.failure_figure import failure_figure

    suite = evaluation.suite
    level = "" if suite.severity is None else f"-{suite.severity:g}"
    where = describe_suite(column, suite.severity, suite.draw)
    for group in dict.fromkeys(factor.group for factor in factors):
        members = [factor for factor in factors if factor.group == group]
        path = folder / f"{column}{level}-{group}.png".replace("/", "-")
        title = f"{evaluation.policy.name} in {where}: {group}"
        failure_figure(members, title).savefig(path, dpi=120)
        say(f"drawn in {path}")
