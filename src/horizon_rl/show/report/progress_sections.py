"""Sections on what runs came to: coverage, signal, cost, the diagnostic."""

from dataclasses import replace

from horizon_rl.show.report.blocks import Block, Drawing, Missing, Prose, Section
from horizon_rl.show.report.figures import level_figure
from horizon_rl.show.report.gather import Material
from horizon_rl.show.report.score_sections import report_command
from horizon_rl.show.study_figures import cost_figure, coverage_figure, plateau_figure
from horizon_rl.show.study_tables import (
    coverage_table,
    curves_table,
    diagnostic_table,
    length_trends_table,
)
from horizon_rl.show.table import NONE


def coverage_section(material: Material) -> Section:
    """How much of the search region each group covers, against baseline and others."""
    known = any(s for m in material.study.methods for s in m.coverage.values())
    table = coverage_table(material.study)
    base = tuple(
        f"{100.0 * material.baseline[g]:.0f}" if g in material.baseline else NONE
        for g in table.headings[1:]
    )
    blocks: list[Block] = [Prose("No catalogue on record.")]
    if known:
        about = "Coverage by group at the mastered levels, against the baseline"
        figure = coverage_figure(material.study, material.baseline)
        rows = (*table.rows, ("baseline", *base))
        blocks = [
            Drawing(name="coverage", about=about, figure=figure),
            replace(table, rows=rows),
        ]
    return Section(
        id="coverage",
        title="Coverage",
        intro="Mean over a group's parameters of the width of the mastered range over "
        "that of the limit range. The baseline is level 0, where `base` trains.",
        blocks=tuple(blocks),
    )


def signal_section(material: Material) -> Section:
    """What training saw, against success beyond it."""
    study = material.study
    dots = [
        r for r in study.runs if r.length_trends.window and r.ood_success is not None
    ]
    blocks: list[Block] = [
        Prose("The figure needs two runs with a result in ood at severity 0.5.")
    ]
    if len(dots) > 1:
        about = (
            "Best episode length in the run's own ranges against success out of "
            "distribution, a mark for each run"
        )
        blocks = [Drawing(name="signal", about=about, figure=plateau_figure(study))]
    table = length_trends_table(study)
    return Section(
        id="signal",
        title="Recoverable signal",
        intro="Does episode length in training foretell success beyond it?",
        blocks=(*blocks, *([table] if table.rows else [])),
    )


def cost_section(material: Material) -> Section:
    """What was reached at which cost, everything counted."""
    runs = [run.files for run in material.runs if run.files.entries]
    blocks: list[Block] = []
    if runs:
        blocks.append(
            Drawing(
                name="level-by-cost",
                about="Mean mastered level against env steps, dotted where levels go by "
                "the clock",
                figure=level_figure(runs, material.names),
            )
        )
    if material.study.curves:
        blocks.append(
            Drawing(
                name="cost-curve",
                about="Success of checkpoints on the way against env steps",
                figure=cost_figure(material.study),
            )
        )
        blocks.append(curves_table(material.study))
    else:
        rows = (
            '[{"method": "horizon", "seed": 0, "env_steps": 2000000, "success": 0.31}]'
        )
        blocks.append(
            Missing(
                what="Success against cost needs checkpoints on the way: evaluate them "
                f"and list them in a file, {rows}.",
                commands=(report_command(material, "--curve curve.json"),),
            )
        )
    return Section(
        id="cost",
        title="Progress at equal cost",
        intro="Every env step counts: also those rolled back, and those of probes.",
        blocks=tuple(blocks),
    )


def diagnostic_section(material: Material) -> Section:
    """Whether the gates foretold progress."""
    table = diagnostic_table(material.study)
    left_out = "Levels by the clock leave nothing to foretell." * all(
        run.by_clock for run in material.study.runs
    )
    return Section(
        id="diagnostic",
        title="Diagnostic",
        intro="Did a pass foretell progress, or only long episodes?",
        blocks=(Prose(left_out),) if left_out else (table,),
    )
