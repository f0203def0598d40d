"""`horizon bench`: what the parts cost on this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from horizon_rl.bench.curriculum import measure_curriculum
from horizon_rl.bench.timing import Sizes, append_record
from horizon_rl.cli.common import CatalogueFlag, Terminal, print_json
from horizon_rl.domains import Catalogue, load_catalogue
from horizon_rl.show.table import Table
from horizon_rl.support.bounds import NumWorlds, Threads, Within
from horizon_rl.support.errors import needs_extra
from horizon_rl.support.records import encode


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every measurement takes."""

    repeats: Annotated[int, Within(1, 1000)] = 7
    """Measurements to take the median of, after one to warm up."""
    json: bool = False
    """Print JSON instead of a table."""
    save: Path | None = None
    """File to append the figures to, a line of JSON with hardware and versions."""


@dataclass(frozen=True, kw_only=True)
class CurriculumBench(Bench):
    """Measure the curriculum core: decisions, journal, import."""


@dataclass(frozen=True, kw_only=True)
class PhysicsBench(Bench):
    """Measure the bare backend, beside a plain loop over the engine."""

    envs: NumWorlds = 256
    """Worlds."""
    device: str = "auto"
    """Where: auto is the GPU where there is one, else the CPU; cpu, cuda, cuda:1, ..."""
    threads: Threads = 0
    """Threads of the engine on a CPU; 0: as OMP_NUM_THREADS says, else one per core."""
    catalogue: CatalogueFlag = None
    groups: str = "full"
    """Groups of the catalogue that worlds have: full, core, or names with commas between
    them; the others are left out."""


@dataclass(frozen=True, kw_only=True)
class EnvBench(PhysicsBench):
    """Measure env.step with random actions, beside the physics in it."""

    beside: Annotated[Path | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Another catalogue, whose worlds take turns with these: what do these cost more? On a
    CPU measured in CPU seconds, so that what else the machine does is left out."""


@dataclass(frozen=True, kw_only=True)
class TrainBench(PhysicsBench):
    """Measure the whole training loop, and where its time goes."""

    policy: Literal["transformer", "mlp"] = "mlp"
    """The actor."""
    preset: Literal["smoke", "laptop", "gpu", "paper"] = "laptop"
    """Sizes of networks and update."""


@dataclass(frozen=True, kw_only=True)
class EvalBench(PhysicsBench):
    """Measure evaluation of a policy, beside the same motion by env.step alone."""

    envs: NumWorlds = 512
    """Worlds; an evaluation has up to 512 side by side."""
    policy: str = "core"
    """A name of `horizon models`, a checkpoint or run directory, an .onnx file, ..."""


@dataclass(frozen=True)
class BenchCmd:
    """Measure what the parts cost on this machine."""

    part: tyro.conf.OmitArgPrefixes[
        Annotated[CurriculumBench, tyro.conf.subcommand("curriculum")]
        | Annotated[PhysicsBench, tyro.conf.subcommand("physics")]
        | Annotated[EnvBench, tyro.conf.subcommand("env")]
        | Annotated[TrainBench, tyro.conf.subcommand("train")]
        | Annotated[EvalBench, tyro.conf.subcommand("eval")]
    ]


def run(cmd: BenchCmd) -> None:
    part = cmd.part
    title, figures = _measure(part)
    if part.save:
        append_record(part.save, encode(part), figures)
    if part.json:
        print_json(figures)
        return
    rows = tuple(_row(name, value) for name, value in figures.items())
    Terminal().print_table(Table(f"{title}, medians", ("what", "figure"), rows))


def _measure(part: Bench) -> tuple[str, dict[str, float]]:
    if not isinstance(part, PhysicsBench):
        return "Curriculum core", measure_curriculum(part.repeats)
    with needs_extra("train"):
        from horizon_rl.bench.evaluation import measure_evaluation
        from horizon_rl.bench.simulation import (
            compare_envs,
            measure_env,
            measure_physics,
        )
        from horizon_rl.bench.training import measure_training
        from horizon_rl.policies.load import load_policy
    whole = load_catalogue(part.catalogue or "paper")
    catalogue = Catalogue(tuple(whole[name] for name in whole.select(part.groups)))
    sizes = Sizes(part.envs, part.threads, part.repeats, part.device, catalogue)
    worlds = f"{part.envs} worlds"
    if isinstance(part, TrainBench):
        what = f"{part.preset} {part.policy}, {worlds}"
        return f"Training, {what}", measure_training(part.preset, part.policy, sizes)
    if isinstance(part, EvalBench):
        figures = measure_evaluation(load_policy(part.policy), sizes)
        return f"Evaluation, {part.policy}, {worlds}", figures
    if isinstance(part, EnvBench) and part.beside:
        figures = compare_envs(sizes, load_catalogue(part.beside))
        return f"Environment beside '{part.beside}', {worlds}", figures
    if isinstance(part, EnvBench):
        return f"Environment, {worlds}", measure_env(sizes)
    return f"Physics, {worlds}", measure_physics(sizes)


def _row(name: str, value: float) -> tuple[str, str]:
    """Turn `build_s` into "build" and "0.12 s"."""
    name = name.replace("_", " ")
    if name.endswith("steps per s"):
        return name.removesuffix(" per s"), f"{value:,.0f} /s"
    if name.endswith(" share"):
        return name, f"{value:.1%}"
    what, _, unit = name.rpartition(" ")
    units = ("us", "ms", "s")
    if unit not in units:
        return name, f"{value:.3g}"
    larger = 0
    while value >= 1000.0 and units.index(unit) + larger < 2:
        value, larger = value / 1000.0, larger + 1
    return what, f"{value:.3g} {units[units.index(unit) + larger]}"
