"""What is attacked: a sound file or input of every kind, and who reads it.

A reader returns what follows from its input, in a form that can be compared. Input that is
refused ends in an InputError; a warning is said. Of what has a checksum, or follows from
other files, any other result than the sound one's must be said.
"""

import io
import os
import shlex
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from tests.campaign.mutations import forge_line, mutate_bytes, mutate_text

from horizon_rl.cli import COMMANDS, HEAVY, main
from horizon_rl.cli.parse import parse
from horizon_rl.domains import AtLevels, load_catalogue, paper_catalogue
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.evaluation.success import read_curve, read_results
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.physics import sample_pool
from horizon_rl.policies.load import load_policy
from horizon_rl.robots.mjcf import load_robot
from horizon_rl.runs.read import read_run
from horizon_rl.runs.verify import verify_run
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode

ROOT = Path(__file__).parents[2]
Mutate = Callable[[bytes, Any], bytes]


@dataclass(frozen=True)
class Kind:
    """A file or input, who reads it, and how it is altered."""

    file: Path
    read: Callable[[], Any]
    mutate: Mutate
    sealed: bool
    """Whether another result must be said."""
    ms: float = 1.0
    """About what a mutation takes."""


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Write a sound file of every kind into a folder."""
    run = folder / "run"
    quietly("train", "--preset", "smoke", "--run", run, "--table", 0, "--steps", 3000)
    quietly("train", "--resume", run, "--steps", 3001, "--table", 0)
    journal, phase = run / "journal.jsonl", run / "evidence" / "phase-00000.npz"
    last = sorted((run / "checkpoints").iterdir())[-1]
    quietly("export", "base-mlp", folder / "sealed.onnx")
    os.environ["HORIZON_CACHE"] = str(folder / "cache")
    suite = folder / "ood.toml"
    suite.write_text(SUITE)
    results = folder / "results.json"
    flags = ["--suite", suite, "--episodes", 2, "--json", results, "--device", "cpu"]
    quietly("eval", "stand", "--no-stand", *flags)
    open_onnx(folder / "sealed.onnx", folder / "open.onnx")
    catalogue = folder / "catalogue.toml"
    catalogue.write_text((ROOT / "src/horizon_rl/domains/paper.toml").read_text())
    robot = folder / "robot.xml"
    robot.write_text((ROOT / "examples/own_robot.xml").read_text())
    config = folder / "config.toml"
    config.write_text(quietly("train", "--preset", "smoke", "--print-config"))
    curve = folder / "curve.json"
    curve.write_text(CURVE)
    line = folder / "line.txt"
    line.write_text(LINE)
    cached = sorted((folder / "cache").glob("??/*.npz"))[0]

    def summary() -> Any:
        found = encode(read_run(journal, evidence=False).summary)
        if (found["times"] or {}).get("phases") != found["phases"]:
            warnings.warn("the board says of how many phases", stacklevel=1)
        return {k: v for k, v in found.items() if k != "age_s"}

    def telemetry() -> Any:
        found = read_run(journal)
        return [summary(), *map(dict, found.metrics)]

    def evidence() -> Any:
        found, findings = verify_run(journal)
        wrong = recheck(found).disagreements
        said = [problem for finding in findings for problem in finding.problems]
        if said or wrong:
            raise InputError(f"{said} {wrong}")
        return {k: v.tolist() for k, v in found.evidence[0].items()}

    def checkpoint() -> Any:
        return load_policy(str(last)).digest

    def act(file: str) -> Callable[[], Any]:
        def run_once() -> Any:
            policy = load_policy(str(folder / file)).make(torch.device("cpu"))
            policy.reset(torch.ones(2, dtype=torch.bool))
            obs = TensorDict({"actor": torch.zeros(2, 45)}, [2])
            return policy.act(obs).tolist()

        return run_once

    def frozen() -> Any:
        found = load_suite(str(suite))
        column = next(iter(found.frozen.values()))
        return column.scenarios(2).commands.tolist()

    def drawn() -> Any:
        return sample_pool(
            *([load_robot("go2")], load_catalogue(catalogue), AtLevels({}), 2),
            np.random.default_rng(0),
        ).parameters.tolist()

    def body() -> Any:
        robot_ = load_robot(str(robot))
        rng = np.random.default_rng(0)
        pool = sample_pool([robot_], paper_catalogue(), AtLevels({}), 2, rng)
        return pool.start_qpos.tolist()

    def settings() -> Any:
        return parse_line(f"train --config {shlex.quote(str(config))}")

    def flags_of_line() -> Any:
        return [
            parse_line(each)
            for each in line.read_text(errors="surrogateescape").splitlines()
        ]

    def kept() -> Any:
        key = cached.parent.name + cached.stem
        names = np.load(io.BytesIO(whole_cached)).files
        found = ArrayCache(folder / "cache").read(key, names)
        if found is None:
            raise InputError("nothing kept")
        return {name: values.tolist() for name, values in found.items()}

    whole_cached = cached.read_bytes()
    return {
        "journal": Kind(journal, summary, mutate_text, True, 5),
        "journal, forged": Kind(journal, summary, forge_line, False, 5),
        "metrics": Kind(run / "metrics.jsonl", telemetry, mutate_text, True, 24),
        "times": Kind(run / "times.jsonl", telemetry, mutate_text, True, 24),
        "times, forged": Kind(run / "times.jsonl", telemetry, forge_line, False, 24),
        "budget": Kind(run / "budget.json", telemetry, mutate_text, True, 24),
        "evidence": Kind(phase, evidence, mutate_bytes, True, 30),
        "checkpoint.json": Kind(
            last / "checkpoint.json", checkpoint, mutate_text, True, 10
        ),
        "weights": Kind(
            last / "weights.safetensors", checkpoint, mutate_bytes, True, 10
        ),
        "SHA256SUMS": Kind(last / "SHA256SUMS", checkpoint, mutate_text, True, 10),
        "ONNX, ours": Kind(
            folder / "sealed.onnx", act("sealed.onnx"), mutate_bytes, True, 10
        ),
        "ONNX, foreign": Kind(
            folder / "open.onnx", act("open.onnx"), mutate_bytes, False, 6
        ),
        "cached results": Kind(cached, kept, mutate_bytes, True),
        "catalogue": Kind(catalogue, drawn, mutate_text, False, 9),
        "suite": Kind(suite, frozen, mutate_text, False, 14),
        "settings": Kind(config, settings, mutate_text, False, 70),
        "flags": Kind(line, flags_of_line, mutate_text, False, 100),
        "robot (MJCF)": Kind(robot, body, mutate_text, False, 10),
        "results": Kind(
            results, lambda: repr(read_results(results)), mutate_text, False
        ),
        "cost curve": Kind(curve, lambda: repr(read_curve(curve)), mutate_text, False),
    }


SUITE = """\
episodes = 2
severity = 0.5
[task]
episode_s = 0.1
push = { min_interval_s = 1.0, max_interval_s = 2.0 }
[success]
max_error = 0.4
[columns]
heavy = { parameters = { mass.scale = [1.5, 2.0] } }
all = { groups = ["mass", "com"], levels = { contact = 0.3 } }
[columns.none]
motors = "own"
"""
CURVE = '[{"method": "a", "seed": 0, "env_steps": 1000.0, "success": 0.25}]'
LINE = """\
train --num-envs 8 --seed 3 --learner.ppo.gamma 0.9 --task.episode-s 2.5 --steps 100
rehearse --learner.noise 0.1 --curriculum.max-phases 5 --leap.rungs 0.5 1.0 --seeds 2
eval stand --episodes 3 --severity 0.5 1.0 --threads 2
play --command 0.1 0.2 0.3 --seconds 4.5 --fps 20 --port 8080
"""


def quietly(*args: object) -> str:
    """Run a command that must work; return what it printed."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert main([str(arg) for arg in args]) == 0, out.getvalue()
    return out.getvalue()


def parse_line(text: str) -> str:
    """Read a command's settings from its line; nothing runs."""
    from importlib import import_module

    try:
        name, *args = shlex.split(text) or [""]
    except ValueError as error:  # The shell would refuse it.
        raise InputError(str(error)) from error
    if name not in COMMANDS:
        raise InputError(f"no command {name}")
    place = f"{name}_flags" if name in HEAVY else name
    flags = import_module(f"horizon_rl.cli.{place}")
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return repr(parse(name, flags, getattr(flags, COMMANDS[name][0]), args))
    except SystemExit as stop:
        if stop.code in (0, 2):
            raise InputError("refused, or help") from stop
        raise


def open_onnx(sealed: Path, file: Path) -> None:
    """Write an export as another stack would: without a checksum of its own."""
    import onnx

    model = onnx.load(sealed)
    del model.metadata_props[:]
    onnx.save(model, file)
