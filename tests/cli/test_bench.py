"""Benchmarks run, and their figures can be kept."""

import json
from pathlib import Path
from runpy import run_path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")

from horizon_rl.cli import bench, main
from horizon_rl.learning import TransformerCfg


def test_evaluation_is_measured_beside_the_environment(tmp_path, capsys):
    file = tmp_path / "figures.jsonl"
    args = ["bench", "eval", "--envs", "8", "--repeats", "1", "--save", str(file)]
    for _ in range(2):
        assert main([*args, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out.split("\n}\n")[1] + "\n}")
    assert figures["ratio"] > 0.0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 2 and lines[1]["figures"] == figures
    assert lines[0]["settings"]["envs"] == 8
    assert lines[0]["hardware"]["cores"] >= 1 and lines[0]["versions"]["mujoco"]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("decision_us", 4744.0, "4.74 ms"),
        ("decision_us", 474.0, "474 us"),
        ("build_ms", 1500.0, "1.5 s"),
        ("import_s", 0.12, "0.12 s"),
        ("import_s", 4000.0, "4e+03 s"),
        ("load_us", 3.2e6, "3.2 s"),
    ],
)
def test_times_are_in_the_unit_that_fits(name, value, shown):
    assert bench._row(name, value) == (name.rpartition("_")[0], shown)


def test_figures_of_a_catalogue_s_groups_can_be_kept(tmp_path):
    file = tmp_path / "figures.jsonl"
    args = "bench env --envs 4 --repeats 1 --device cpu --json --catalogue extended"
    assert main([*args.split(), "--groups", "core,terrain", "--save", str(file)]) == 0
    settings = json.loads(file.read_text())["settings"]
    assert (settings["catalogue"], settings["groups"]) == ("extended", "core,terrain")


def test_a_catalogue_is_measured_beside_another(capsys):
    args = "bench env --envs 4 --repeats 1 --device cpu --json --groups terrain"
    args = [*args.split(), "--catalogue", "extended", "--beside", "paper"]
    assert main(args) == 0
    figures = json.loads(capsys.readouterr().out)
    ratio = figures["steps_per_s"] / figures["beside_steps_per_s"]
    assert figures["cost_share"] == pytest.approx(1.0 - ratio)


def test_unwritable_file_is_a_clear_error(tmp_path, capsys):
    args = ["bench", "curriculum", "--repeats", "1"]
    assert main([*args, "--save", str(tmp_path / "none" / "figures.jsonl")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_cost_of_the_cache_is_measured():
    cfg = TransformerCfg(window=15)
    script = Path(__file__).parents[2] / "benchmarks" / "cache.py"
    costs = run_path(str(script))["inference_costs"](cfg, 2, repeats=1)
    assert len(costs) == 3 and min(costs.values()) > 0.0


@pytest.mark.parametrize(
    "part", ["physics", "env", "train", "env --catalogue extended"]
)
def test_simulation_and_training_are_measured(part, capsys):
    sizes = ["--envs", "8", "--repeats", "1", "--device", "cpu"]
    assert main(["bench", *part.split(), *sizes, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["ratio"] > 0.0 and figures["steps_per_s"] > 0.0
