"""Flags of `horizon train`."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, get_args

import tyro

from horizon_rl.cli.common import CatalogueFlag
from horizon_rl.curriculum.methods import GRAM
from horizon_rl.runs.find import find_journal
from horizon_rl.support.bounds import NumScenarios
from horizon_rl.support.errors import InputError, needs_extra, unknown

with needs_extra("train"):
    from horizon_rl.training.config import TrainCfg
    from horizon_rl.training.context import read_context
    from horizon_rl.training.presets import (
        PolicyKind,
        Preset,
        preset_cfg,
        preset_policy,
    )

ADVANCED = (
    *("catalogue", "table", "wandb", "film", "num_bodies", "rows_per_env", "window"),
    *("phase_iterations", "probe_scenarios", "anchor_scenarios", "scout_scenarios"),
    *("stagger", "rollback_rate", "linear_phases", "keep_checkpoints"),
)

SMOKE_TABLE = 4
"""Scenarios a column after the smallest run, which is there to see that all works."""


@dataclass(frozen=True, kw_only=True)
class TrainCmd:
    """Train a policy whose physics widens as long as it stays recoverable.

    On several GPUs: torchrun --nproc-per-node 4 -m horizon_rl train ...
    """

    preset: Preset = "laptop"
    """smoke: within a minute, to see that all works; laptop: minutes on two cores; gpu:
    4096 worlds, short phases; paper: the paper's tables, 4096 worlds, long phases."""
    policy: PolicyKind | None = None
    """The actor: transformer, mlp, or oracle, which is the preset's usual one and sees
    the parameters of its instance; without it, mlp for smoke and laptop, else the
    paper's transformer. Method gram has an mlp in all presets."""
    init: str | None = None
    """What to start from: a shipped policy (`horizon models`), a run (or the `last`) or a
    checkpoint, of which the weights are taken and not the counters; or `scratch`. Without
    it, the shipped policy of the preset's size, if there is one."""
    run: Path | None = None
    """Directory of the run; without it, logs/train/<date and time>_<method>-<groups>."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN|last")] = None
    """Go on with the run in this directory, or with the `last` one in logs/train, with
    the settings it was started with; --steps and --minutes may set a new budget."""
    trust: bool = False
    """Run code that the catalogue of a resumed run names, although you never ran it."""
    catalogue: CatalogueFlag = None
    device: str = "auto"
    """Where to simulate and learn: auto is the GPU where there is one, else the CPU;
    cpu, cuda, cuda:1, ... A resumed run may take another. Of several ranks (torchrun),
    each takes the GPU of its own number."""
    table: NumScenarios = 128
    """Scenarios a column of the table at the end, which compares the run's end with its
    start out of distribution; smoke has 4 unless told; 0: no table."""
    wandb: bool = False
    """Send metrics to Weights & Biases too (needs `pip install wandb`)."""
    film: bool = False
    """Film every commit, a few seconds each, for the report, TensorBoard and W&B."""
    cfg: Annotated[TrainCfg, tyro.conf.arg(name="")] = field(default_factory=TrainCfg)


def default(args: Sequence[str]) -> TrainCmd:
    """Return the defaults that --preset, --policy or --resume in `args` ask for."""
    chosen, _ = _decisive_flags().parse_known_args(args)
    table = TrainCmd.table
    if chosen.resume and (chosen.preset or chosen.policy):
        raise InputError("--resume goes on with a run: leave out --preset and --policy")
    if chosen.resume:
        # What is left out stays as the run has it.
        cfg = read_context(named_run(chosen.resume)).train
    else:
        if chosen.policy and chosen.policy not in get_args(PolicyKind):
            raise InputError(unknown("policy", chosen.policy, get_args(PolicyKind)))
        preset = chosen.preset or TrainCmd.preset
        usual = "mlp" if chosen.method == GRAM else preset_policy(preset)
        cfg = preset_cfg(preset, chosen.policy or usual)
        table = SMOKE_TABLE if preset == "smoke" else table
        if chosen.method == GRAM:
            # Its actor is its own; a mirror that is asked for is refused.
            actor = replace(cfg.learner.actor, symmetric=False)
            cfg = replace(cfg, learner=replace(cfg.learner, actor=actor))
    if chosen.minutes and not chosen.steps:
        # Whoever asks for minutes wants them all, however many env steps they are.
        cfg = replace(cfg, steps=0)
    return TrainCmd(cfg=cfg, table=table)


@cache  # A grid asks for every one of its runs.
def _decisive_flags() -> ArgumentParser:
    """Return what reads the flags that other flags' defaults depend on."""
    flags = ArgumentParser("horizon train", add_help=False, allow_abbrev=False)
    for flag in ("--preset", "--policy", "--method", "--steps", "--minutes"):
        flags.add_argument(flag)
    flags.add_argument("--resume", type=Path)
    return flags


def named_run(path: Path) -> Path:
    """Return the directory of a run, where `last` names the newest."""
    return find_journal(str(path), {}).parent
