"""Failure maps from episodes on disk, and what is still to be evaluated."""

import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from horizon_rl.cli import main
from horizon_rl.cli.report import find_sources
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.shipped import RUN, model_path
from horizon_rl.runs.journal import replay
from horizon_rl.runs.lines import parse_json, to_line
from horizon_rl.runs.paths import CHECKPOINTS, JOURNAL
from horizon_rl.show.report.measure import _load, find_maps, missing
from horizon_rl.support.durable import digest_directory
from horizon_rl.task import EpisodeTable


@pytest.fixture
def episodes_on_disk(tmp_path, monkeypatch):
    """Keep episodes of core-mlp in which it falls wherever the robot is heavy."""
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    cache = ArrayCache(tmp_path / "cache")
    suite = load_suite("ood", 0.5)
    heavy = suite.frozen["all"].instances["mass.scale"][:256] > 2.0
    columns = {field.name: np.zeros(256) for field in fields(EpisodeTable)}
    columns["length"] = np.where(heavy, 10, suite.task.max_steps)
    columns["cause"] = heavy.astype(int)
    evaluator = Evaluator(cache, "cpu")
    key = evaluator._key(load_policy("core-mlp"), suite.frozen["all"])
    assert key is not None
    cache.write(key, columns)
    return float(1.0 - heavy.mean())


def test_map_names_what_separates_failures_and_runs_nothing(episodes_on_disk):
    (found,) = find_maps(find_sources(["core-mlp"]))
    assert found.factors[0].name == "mass.scale"
    assert found.success == episodes_on_disk and "256 scenarios" in found.title


def test_map_is_on_the_page(episodes_on_disk, tmp_path):
    assert main(["report", "core-mlp", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "figures" / "failures-core-mlp.svg").exists()
    assert "--explain" not in (tmp_path / "out" / "index.html").read_text()


def test_policy_without_a_run_stands_beside_the_others(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["report", "core-mlp", "mine=base", "--out", str(out)]) == 0
    assert ">mine<" in (out / "index.html").read_text("utf-8")
    assert main(["report", "base", "--out", str(out)]) == 2
    assert "comes without the run that made it" in capsys.readouterr().err


def vouch_for(checkpoint: Path, journal: Path) -> None:
    """Let a journal name the files that a checkpoint has here."""
    lines = [parse_json(line, "") for line in journal.read_bytes().splitlines()]
    for line in lines:
        del line["crc"]
        if (line.get("checkpoint") or {}).get("name") == checkpoint.name:
            line["checkpoint"]["digest"] = digest_directory(checkpoint)
    journal.write_bytes(b"".join(map(to_line, lines)))


def test_directory_called_like_a_shipped_policy_has_weights_of_its_own(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shipped = model_path("full-mlp")
    run = shutil.copytree(shipped / RUN, "core-mlp")
    entries = replay(Path(run, JOURNAL)).entries
    last = [e.checkpoint.name for e in entries if e.checkpoint][-1]
    folder = Path(shutil.copytree(shipped, Path(run, CHECKPOINTS, last)))
    vouch_for(folder, Path(run, JOURNAL))
    for text in ("./core-mlp", "core-mlp/", "core-mlp/journal.jsonl"):
        (source,) = find_sources([text])
        assert _load(source).digest == load_policy("full-mlp").digest
        assert source.text.startswith("./") or source.text.endswith("/")
        assert source.made(source.text) and not source.made("core-mlp")
    (source,) = find_sources(["core-mlp"])
    assert _load(source).digest == load_policy("core-mlp").digest
    assert source.made("core-mlp")


def test_policy_without_episodes_has_no_map(cache_folder):
    assert find_maps(find_sources(["core-mlp"])) == []


def test_only_what_has_no_result_is_evaluated():
    sources = find_sources(["core-mlp"])
    suite = {"name": "curve"}
    known = [{"policy": "core-mlp", "suite": suite}]
    assert [s.name for _, s in missing(sources, known)] == ["interventions"]
    known = [{"policy": "another", "suite": suite}]
    assert [s.name for _, s in missing(sources, known)] == ["curve", "interventions"]


@pytest.mark.manual
def test_evaluate_fills_every_section(tmp_path, monkeypatch):
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    args = ["report", "core-mlp", "--evaluate", "64", "--out", str(tmp_path / "out")]
    assert main(args) == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "stilts-and-payloads" in page and "horizon eval" not in page
