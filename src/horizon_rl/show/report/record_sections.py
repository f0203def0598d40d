"""Sections for the record: where steps went, all settings, the commands."""

from collections.abc import Iterator, Mapping
from typing import Any

from horizon_rl.runs.read import find
from horizon_rl.show.report.blocks import Block, Commands, Drawing, Facts, Fold, Section
from horizon_rl.show.report.figures import steps_figure
from horizon_rl.show.report.gather import Material
from horizon_rl.show.status_board import DONE, show_count
from horizon_rl.show.study_tables import costs_table
from horizon_rl.show.table import NONE, Cells
from horizon_rl.support.records import encode


def steps_section(material: Material) -> Section:
    """Where env steps and time went."""
    spent = {
        r.label: r.read.summary.by_action for r in material.runs if r.files.entries
    }
    blocks: list[Block] = []
    if spent:
        about = "Env steps by what became of the phase they were spent in"
        figure = steps_figure(spent)
        blocks = [
            Drawing(name="env-steps", about=about, figure=figure),
            _verdict_table(material),
        ]
    return Section(
        id="steps",
        title="Env steps by verdict",
        blocks=(*blocks, costs_table(material.study)),
    )


def _verdict_table(material: Material) -> Cells:
    rows = tuple(
        (
            run.label,
            DONE[action],
            str(spent.phases),
            show_count(spent.env_steps),
            f"{spent.share:.0%}",
            NONE
            if spent.probe_env_steps is None
            else show_count(spent.probe_env_steps),
        )
        for run in material.runs
        for action, spent in run.read.summary.by_action.items()
        if spent.phases
    )
    headings = ("run", "verdict", "phases", "env steps", "share", "in probes")
    return Cells("Phases and env steps by run", headings, rows)


def config_section(material: Material) -> Section:
    """All settings of every run."""
    return Section(
        id="settings",
        title="Settings",
        intro="All that a run was started with, by its journal.",
        blocks=tuple(
            Fold(
                title=run.label,
                blocks=(
                    Cells(
                        "",
                        ("setting", "value"),
                        tuple(_flat(encode(run.files.journal.header))),
                    ),
                ),
            )
            for run in material.runs
        ),
    )


def _flat(data: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Name every value by its path; a list of plain values is one value."""
    if isinstance(data, list | tuple) and any(isinstance(x, Mapping) for x in data):
        # What has a name of its own goes by it, and not by its number.
        data = {str(find(x, str, "name") or k): x for k, x in enumerate(data)}
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _flat(value, f"{where}.{key}" if where else str(key))
    elif isinstance(data, list | tuple):
        yield where, ", ".join(map(str, data))
    else:
        yield where, str(data)


def making_section(material: Material) -> Section:
    """The commands behind the page and its runs."""
    blocks: list[Block] = []
    for run in material.runs:
        if model := run.source.model:
            blocks.append(
                Facts(
                    title=run.label,
                    subtitle=f"Trained at commit {model.commit} on {model.hardware}, "
                    f"{model.minutes:g} min.",
                )
            )
            blocks.append(Commands(lines=(model.command,)))
        elif resume := run.read.summary.resume:
            blocks.append(Facts(title=run.label, subtitle="To go on with it:"))
            blocks.append(Commands(lines=(resume,)))
    if material.command:
        blocks.append(Facts(title="This page"))
        blocks.append(Commands(lines=(material.command,)))
    return Section(id="commands", title="Commands", blocks=tuple(blocks))
