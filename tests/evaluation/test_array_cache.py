"""Results on disk: what was run is not run again, what has changed is."""

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from tables import assert_equal, constant, head

import horizon_rl
from horizon_rl.evaluation import evaluate as evaluate_module
from horizon_rl.evaluation.array_cache import (
    ArrayCache,
    source_files,
)
from horizon_rl.evaluation.lanes import Lanes
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.support.folders import cache_folder
from horizon_rl.task import EpisodeTable, SuccessCfg


@pytest.fixture
def cache(own_cache):
    assert cache_folder() == own_cache
    return ArrayCache(cache_folder())


@pytest.fixture
def count_runs(monkeypatch):
    """Count scenarios as they run."""
    rows_run: list[int] = []

    class Spy(Lanes):
        def begin(self, make, scenarios, seed, rows):
            rows_run.extend(rows)
            super().begin(make, scenarios, seed, rows)

    monkeypatch.setattr(evaluate_module, "Lanes", Spy)
    return rows_run


def test_second_evaluation_runs_nothing(make_suite, run, cache, count_runs):
    first = run("stand", make_suite(), cache=cache)
    assert len(count_runs) == 12
    second = run("stand", make_suite(), cache=cache)
    assert len(count_runs) == 12
    for name, table in first.columns.items():
        assert_equal(table, second.columns[name])
        for field in fields(EpisodeTable):
            a, b = (getattr(x.columns[name], field.name) for x in (first, second))
            assert a.dtype == b.dtype


def test_fewer_episodes_come_from_what_is_kept(make_suite, run, cache, count_runs):
    whole = run("stand", make_suite(), cache=cache)
    few = run("stand", make_suite(), 3, cache=cache)
    assert len(count_runs) == 12
    assert_equal(few.columns["heavy"], head(whole.columns["heavy"], 3))
    run("stand", make_suite(), cache=cache)
    assert len(count_runs) == 12


def test_more_episodes_run_only_the_chunks_that_are_missing(
    make_suite, run, cache, count_runs, small_chunk
):
    suite = make_suite("episodes=11\n[task]\nepisode_s=0.1\n[columns]\na={}")
    run("stand", suite, 6, cache=cache)
    assert count_runs == [0, 1, 2, 3, 4, 5]
    count_runs.clear()
    result = run("stand", suite, 9, cache=cache)
    # The second chunk was not whole.
    assert count_runs == [4, 5, 6, 7, 8]
    assert_equal(result.columns["a"], run("stand", suite, 9).columns["a"])


def test_killed_evaluation_goes_on_where_it_was(
    make_suite, run, cache, count_runs, small_chunk, monkeypatch
):
    suite = make_suite("episodes=11\n[task]\nepisode_s=0.1\n[columns]\na={}")
    spy = vars(evaluate_module)["Lanes"]

    class Killed(spy):
        def begin(self, make, scenarios, seed, rows):
            if rows.start > 0:
                raise KeyboardInterrupt
            super().begin(make, scenarios, seed, rows)

    monkeypatch.setattr(evaluate_module, "Lanes", Killed)
    with pytest.raises(KeyboardInterrupt):
        run("stand", suite, cache=cache)
    monkeypatch.setattr(evaluate_module, "Lanes", spy)
    count_runs.clear()
    result = run("stand", suite, cache=cache)
    assert count_runs == [8, 9, 10]
    assert_equal(result.columns["a"], run("stand", suite).columns["a"])


def test_another_suite_or_policy_never_meets_what_is_kept(
    make_suite, make_checkpoint, run, cache, count_runs
):
    checkpoint = make_checkpoint(seed=1)
    suites = [
        make_suite("episodes=2\n[task]\nepisode_s=0.1\n[columns]\na={}"),
        make_suite("episodes=2\n[task]\nepisode_s=0.12\n[columns]\na={}"),
        make_suite("episodes=2\nseed=1\n[task]\nepisode_s=0.1\n[columns]\na={}"),
        make_suite("episodes=2\nrobots=['a1']\n[task]\nepisode_s=0.1\n[columns]\na={}"),
    ]
    for i, suite in enumerate(suites, start=1):
        run(checkpoint, suite, cache=cache)
        assert len(count_runs) == 2 * i
    others = make_checkpoint(seed=2), make_checkpoint(seed=1, action_scale=0.3), "stand"
    for i, policy in enumerate(others, start=5):
        run(policy, suites[0], cache=cache)
        assert len(count_runs) == 2 * i
    # A name, and what counts as a success, change no episode.
    run(load_policy(str(checkpoint), "other"), suites[0], cache=cache)
    run(checkpoint, replace(suites[0], success=SuccessCfg(max_error=0)), cache=cache)
    assert len(count_runs) == 14


def test_changed_software_never_meets_what_is_kept(
    make_suite, run, cache, count_runs, monkeypatch
):
    run("stand", make_suite(), cache=cache)
    module = "horizon_rl.evaluation.array_cache.software"
    monkeypatch.setattr(module, lambda: {"mujoco": "another"})
    run("stand", make_suite(), cache=cache)
    assert len(count_runs) == 24


EVALUATE = """
import sys
from horizon_rl.domains import paper_catalogue
from horizon_rl.evaluation.array_cache import ArrayCache
from horizon_rl.evaluation.evaluate import Evaluator
from horizon_rl.evaluation.results import impossible_share
from horizon_rl.evaluation.suite import Column, Suite, spans_at
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.load import load_policy
from horizon_rl.policies.onnx_graph import to_onnx
from horizon_rl.task import TaskCfg

column = Column(name="a", spans=spans_at(paper_catalogue(), {}))
suite = Suite(name="s", columns=(column,), task=TaskCfg(episode_s=0.1))
for policy in sys.argv[1:]:
    Evaluator(ArrayCache(None)).evaluate(load_policy(policy), suite, 2)
impossible_share(suite.frozen["a"], suite.success, 2, ArrayCache(None))
for name, module in sys.modules.items():
    if name.startswith("horizon_rl"):
        print(module.__file__)
"""


@pytest.mark.slow
def test_key_covers_every_module_that_an_evaluation_loads(make_checkpoint, tmp_path):
    path = make_checkpoint("transformer")
    actor = load_actor(path)[0]
    (tmp_path / "a.onnx").write_bytes(to_onnx(actor))
    command = [sys.executable, "-c", EVALUATE, str(path), str(tmp_path / "a.onnx")]
    loaded = subprocess.check_output(command, text=True).split()
    hashed = {str(file) for file in source_files(Path(horizon_rl.__file__).parent)}
    assert len(loaded) > 50 and not set(loaded) - hashed


def test_key_covers_code_and_tables_but_not_what_only_shows_results(tmp_path):
    names = ("__init__.py", "a/first.py", "a/table.toml", "a/model.json", "cli/x.py")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert source_files(tmp_path) == [tmp_path / name for name in names[:3]]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"nonsense",
        cut,
        lambda content: flip(content, content.index(b"returns.npy") + 60),
        # The first of two mentions is the array's own, the second the table of them.
        lambda content: flip(content, content.rindex(b"returns.npy")),
    ],
    ids=["empty", "nonsense", "cut", "number", "name"],
)
def test_damaged_file_is_left_out_with_a_warning_and_written_again(
    make_suite, run, cache, own_cache, count_runs, damage
):
    suite = make_suite("episodes=2\n[task]\nepisode_s=0.1\n[columns]\na={}")
    first = run("stand", suite, cache=cache)
    [file] = own_cache.rglob("*.npz")
    content = file.read_bytes()
    file.write_bytes(damage(content))
    with pytest.warns(UserWarning, match="is damaged and left out"):
        second = run("stand", suite, cache=cache)
    assert len(count_runs) == 4
    assert_equal(first.columns["a"], second.columns["a"])
    assert file.read_bytes() == content
    run("stand", suite, cache=cache)
    assert len(count_runs) == 4


def test_cache_that_cannot_be_written_only_warns(make_suite, run, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache = ArrayCache(tmp_path / "file")
    with pytest.warns(UserWarning, match="cannot keep results") as warnings:
        result = run("stand", make_suite(), cache=cache)
    assert len(warnings) == 1 and len(result.columns["plain"]) == 6


def test_full_disk_only_warns(make_suite, run, cache, own_cache, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    module = "horizon_rl.evaluation.array_cache.write_file"
    monkeypatch.setattr(module, full)
    with pytest.warns(UserWarning, match="No space left"):
        run("stand", make_suite(), cache=cache)
    assert not list(own_cache.rglob("*.npz"))


def test_python_code_is_never_kept(make_suite, run, cache, own_cache, count_runs):
    for _ in range(2):
        run(constant(0.0, 0.0, 0.0), make_suite(), cache=cache)
    assert len(count_runs) == 24 and not own_cache.exists()


def test_no_folder_keeps_nothing(make_suite, run, own_cache, count_runs):
    for _ in range(2):
        run("stand", make_suite(), cache=ArrayCache(None))
    assert len(count_runs) == 24 and not own_cache.exists()
