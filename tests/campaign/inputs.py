"""A sound file or input of every kind, to be attacked."""

import io
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from tests.campaign.mutations import (
    forge_external,
    forge_json,
    forge_record,
    mutate_bytes,
    mutate_text,
)
from tests.campaign.readers import (
    Kind,
    parse_line,
    read_each,
    run_command,
    run_sound,
)
from tests.campaign.run_inputs import make_run_kinds

from horizon_rl.cli.grid_plan import check_evaluations, check_runs
from horizon_rl.domains import AtLevels, load_catalogue, paper_catalogue
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.success import read_curve, read_results
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.grid.folder import Asked, GridFolder, read_collected
from horizon_rl.grid.study_file import load_study
from horizon_rl.physics import sample_pool
from horizon_rl.policies.load import load_policy
from horizon_rl.robots.mjcf import load_robot
from horizon_rl.show.record_tables import KINDS, Choice
from horizon_rl.show.scores import (
    collect,
    read_records,
    suite_table,
    tracking_table,
)
from horizon_rl.support.errors import InputError

ROOT = Path(__file__).parents[2]


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Write a sound file of every kind into a folder."""
    os.environ["HORIZON_CACHE"] = str(folder / "cache")
    suite = folder / "ood.toml"
    suite.write_text(SUITE)
    results = folder / "results.json"
    flags = ["--suite", suite, "--episodes", 2, "--json", results, "--device", "cpu"]
    run_sound("eval", "stand", "--no-stand", *flags)
    run_kinds = make_run_kinds(folder, results)
    run_sound("export", "base-mlp", folder / "sealed.onnx")
    open_onnx(folder / "sealed.onnx", folder / "open.onnx")
    split_onnx(folder / "open.onnx", folder / "split.onnx")
    catalogue = folder / "catalogue.toml"
    catalogue.write_text((ROOT / "src/horizon_rl/domains/paper.toml").read_text())
    robot = folder / "robot.xml"
    # Every toe with a size of its own, which can then be altered alone.
    text = (ROOT / "examples/own_robot.xml").read_text()
    robot.write_text(text.replace('class="toe" pos', 'class="toe" size="0.024" pos'))
    config = folder / "config.toml"
    config.write_text(run_sound("train", "--preset", "smoke", "--print-config"))
    curve = folder / "curve.json"
    curve.write_text(CURVE)
    line = folder / "line.txt"
    line.write_text(LINE)
    grid = folder / "study.toml"
    grid.write_text(GRID)
    records = folder / "records.jsonl"
    whole = [*map(json.loads, (ROOT / "studies/laptop.jsonl").open())]
    for record in whole:  # As if they had been evaluated on the way, too.
        record["evaluations"] += [{**e, "mark": 1e4} for e in record["evaluations"]]
    records.write_text("".join(json.dumps(record) + "\n" for record in whole))
    joints = folder / "joints.json"
    joints.write_text(json.dumps(JOINTS))
    result = GridFolder(folder / "evaluated")
    with result.hold():
        record = json.loads(records.read_text().splitlines()[0])
        result.write_result("a", {"key": {"budget": {}}, "record": record})
        asked = Asked.of(record["settings"], {"budget": {}})
    cached = sorted((folder / "cache").glob("??/*.npz"))[0]

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

    def mapped() -> Any:
        return run_command("robots", robot, "--joints", joints, "--json")

    def evaluated() -> Any:
        found = result.read_result("a"), result.collect({"a": asked})
        if found[0] is None:
            raise InputError("it is evaluated again")
        return found, read_collected(result.records)

    def settings() -> Any:
        return parse_line(f"train --config {shlex.quote(str(config))}")

    def flags_of_line() -> Any:
        return [
            parse_line(each)
            for each in line.read_text(errors="surrogateescape").splitlines()
        ]

    def planned() -> Any:
        study = load_study(grid)
        check_evaluations(study, check_runs(study, str(grid), folder / "grid"))
        # What it would cost, and nothing is written.
        return run_command("grid", grid, "--dry-run", "--out", folder / "grid")

    def tables() -> Any:
        # What `horizon report --results FILE` shows.
        found = collect(read_records(results))
        return repr([(suite_table(each), tracking_table(each)) for each in found])

    def measured() -> Any:
        return read_each(lambda: repr(read_results(results)), tables)

    def collected() -> Any:
        # What `horizon pages` makes of them.
        found = read_collected(records)
        choice = Choice(severity=0.5)
        # A search for the core needs more runs.
        return repr([KINDS[kind](found, choice) for kind in KINDS if kind != "core"])

    def kept() -> Any:
        key = cached.parent.name + cached.stem
        names = np.load(io.BytesIO(whole_cached)).files
        found = ArrayCache(folder / "cache").read(key, names)
        if found is None:
            raise InputError("nothing kept")
        return {name: values.tolist() for name, values in found.items()}

    whole_cached = cached.read_bytes()
    return {
        **run_kinds,
        "ONNX, ours": Kind(
            folder / "sealed.onnx", act("sealed.onnx"), mutate_bytes, True, 10
        ),
        "ONNX, foreign": Kind(
            folder / "open.onnx", act("open.onnx"), mutate_bytes, False, 6
        ),
        "ONNX with external data": Kind(
            folder / "split.onnx", act("split.onnx"), forge_external, False, 6
        ),
        "external weights of ONNX": Kind(
            folder / "weights.bin", act("split.onnx"), mutate_bytes, False, 6
        ),
        "joints": Kind(joints, mapped, mutate_text, False, 30),
        "result of a grid": Kind(
            result.path / "results/a.json", evaluated, mutate_text, False, 10
        ),
        "result of a grid, forged": Kind(
            result.path / "results/a.json", evaluated, forge_json, False, 10
        ),
        "cached results": Kind(cached, kept, mutate_bytes, True),
        "catalogue": Kind(catalogue, drawn, mutate_text, False, 9),
        "suite": Kind(suite, frozen, mutate_text, False, 14),
        "settings": Kind(config, settings, mutate_text, False, 70),
        "flags": Kind(line, flags_of_line, mutate_text, False, 100),
        "study of a grid": Kind(grid, planned, mutate_text, False, 100),
        "records of a grid, forged": Kind(records, collected, forge_record, False, 10),
        "robot (MJCF)": Kind(robot, body, mutate_text, False, 10),
        "results": Kind(results, measured, mutate_text, False),
        "results, forged": Kind(results, measured, forge_json, False),
        "cost curve": Kind(curve, lambda: repr(read_curve(curve)), mutate_text, False),
    }


JOINTS = {
    f"{leg}_{ours}": f"{place}_{theirs}"
    for leg, place in zip(
        ("FL", "FR", "RL", "RR"),
        ("left_front", "right_front", "left_hind", "right_hind"),
        strict=True,
    )
    for ours, theirs in (("hip", "abad"), ("thigh", "hip"), ("calf", "knee"))
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
GRID = """\
seeds = [0, 1]
groups = ["mass,com"]
steps_per_s = 1000.0
[train]
preset = "smoke"
device = "cpu"
steps = 6000
[methods.horizon]
[methods."fixed-0.35"]
method = "fixed"
levels = "0.35"
seeds = [2]
[settings.wide]
num-envs = 64
learner = { ppo = { gamma = 0.9 } }
[[evaluate]]
severity = [0.5]
columns = ["own"]
episodes = 2
marks = [3000.0]
"""


def open_onnx(sealed: Path, file: Path) -> None:
    """Write an export as another stack would: without a checksum of its own."""
    import onnx

    model = onnx.load(sealed)
    del model.metadata_props[:]
    onnx.save(model, file)


def split_onnx(whole: Path, file: Path) -> None:
    """Write a policy with all its weights in another file."""
    import onnx

    onnx.save(
        onnx.load(whole),
        file,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
