"""The live page follows a run: from its files, and in a browser beside a training."""

import itertools
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import run_files
from browsing import listen_for_errors
from horizon_rl.cli import main, watch
from horizon_rl.runs.read import read_run
from horizon_rl.show.report.gather import Source
from horizon_rl.show.report.live import LivePage
from horizon_rl.show.report.tables import time_left_s
from run_files import begin, write_metrics, write_times
from waiting import PATIENCE_S, wait_for

pytest.importorskip("matplotlib")
GOOD = replace(run_files.GOOD, env_steps=1000)
# An iteration is 10 x 10 = 100 steps.
TRAIN = {"num_envs": 10, "phase_iterations": 4, "steps": 10_000}
TRAIN |= {"learner": {"ppo": {"num_steps": 10}}}


@pytest.fixture
def curriculum(tmp_path):
    """Begin a training run without training."""
    begun = begin(tmp_path / "run", (), ranks=1, **TRAIN)
    yield begun
    begun.close()


@pytest.fixture
def live(curriculum, tmp_path, monkeypatch):
    """Show it by a clock that is a second later whenever it is read."""
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr("horizon_rl.show.report.live.time", clock)
    return LivePage(
        Source(
            text="./core-mlp",
            argument="./core-mlp",
            journal=tmp_path / "run" / "journal.jsonl",
            name="horizon",
        )
    )


def now(live) -> str:
    return live.answers["/section/live"].body.decode()


def test_page_says_how_it_was_made(live):
    page = "".join(a.body.decode() for a in live.answers.values())
    assert "horizon watch ./core-mlp" in page


def test_run_without_a_phase_has_a_page(live):
    assert "Phase 0: baseline" in now(live) and "Running" in now(live)


def test_iteration_changes_what_is_under_way_and_draws_nothing(live, tmp_path):
    before = dict(live.answers)
    write_metrics(tmp_path / "run", 0, 1, 1)
    live.update()
    assert "<dd>1 / 4</dd>" in now(live) and "<dd>200</dd>" in now(live)
    assert 'value="0.2500"' in now(live) and live.num_drawn == 1
    changed = {k for k in before if before[k] != live.answers[k]}
    assert changed == {"/", "/state.json", "/section/live"}


def test_judged_phase_is_drawn_once_however_many_look(live, curriculum):
    live._draw_at = 0.0
    curriculum.tell(GOOD)
    for _ in range(5):
        live.update()
    assert live.num_drawn == 2 and "Phase 1: mass" in now(live)
    assert "<figure>" in live.answers["/section/frontiers"].body.decode()


def test_drawing_waits_so_that_training_has_the_machine(live, curriculum):
    curriculum.tell(GOOD)
    for _ in range(2):
        live.update()
        assert live.num_drawn == 1 and "Phase 1: mass" in now(live)
    live.update()  # A second of drawing, and three without.
    assert live.num_drawn == 2


def test_run_that_goes_away_is_said_and_the_page_stays(live, tmp_path):
    shown = live.answers["/section/summary"]
    (tmp_path / "run" / "journal.jsonl").rename(tmp_path / "journal")
    live.update()
    assert "Cannot show: " in now(live) and live.answers["/section/summary"] == shown
    (tmp_path / "journal").rename(tmp_path / "run" / "journal.jsonl")
    live._draw_at = 0.0
    live.update()
    assert "Phase 0: baseline" in now(live)


def test_drawing_that_fails_is_tried_again_as_seldom(live, curriculum, monkeypatch):
    tried = []

    def fail(*args, **kwargs):
        tried.append(args)
        raise ValueError("odd evidence")

    monkeypatch.setattr("horizon_rl.show.report.live.gather", fail)
    live._draw_at = 0.0
    curriculum.tell(GOOD)
    for _ in range(3):
        live.update()
    assert len(tried) == 1
    assert "Cannot show: odd evidence" in now(live) and "Phase 1: mass" in now(live)


def test_end_of_a_run_is_shown(live, curriculum, tmp_path):
    live._draw_at = 0.0
    for _ in range(10):
        curriculum.tell(GOOD)
    curriculum.close()
    live.update()
    assert "Finished" in now(live) and "env steps spent" in now(live)


def test_time_left_is_what_the_budget_leaves_at_the_speed_so_far(
    live, curriculum, tmp_path
):
    curriculum.tell(GOOD)
    write_times(tmp_path / "run", 1, 5.0)
    summary = read_run(tmp_path / "run" / "journal.jsonl").summary
    assert time_left_s(summary) == 45.0  # 9000 of 10000 steps at 200 a second.
    assert time_left_s(replace(summary, budget=None)) is None


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nope"], "there is no run nope"),
        ([], "there is no run under logs/"),
        (["core-mlp", "--port", "70000"], "--port is 70000; accepted: whole numbers"),
        (["core-mlp", "--host", "no.such.host.invalid"], "cannot listen on no.such"),
    ],
)
def test_watch_says_what_is_wrong(args, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "WAIT_S", 0.0)
    assert main(["watch", *args]) == 2
    assert says in capsys.readouterr().err


def start(*args, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "horizon_rl", *map(str, args)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.STDOUT,
        # A shell that runs the tests in the background has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def test_live_page_follows_a_training_without_reload(page, tmp_path):
    pytest.importorskip("mujoco")
    from small_runs import create, run_phases, tiny

    path = tmp_path / "run"
    # It waits for a run that starts a moment later.
    watching = start("watch", path, "--port", 0)
    try:
        assert watching.stdout is not None
        waiting = f"there is no run {path}. Waiting 30 s for it"
        assert watching.stdout.readline().strip() == waiting
        run = create(tiny(max_phases=9), path)
        url = re.search(r"http://\S+", watching.stdout.readline())
        assert url is not None
        errors = listen_for_errors(page)
        page.goto(url[0])
        page.evaluate("window.isTheSame = true")
        page.evaluate("document.querySelector('#settings details').open = true")
        page.evaluate("window.scrollTo(0, 600)")
        assert page.inner_text("#live dd") == "0"
        run_phases(run, 2)
        wait_for(lambda: page.inner_text("#live dd") == "2")
        wait_for(lambda: page.locator("#gates").count())
        assert page.evaluate("window.isTheSame") and page.evaluate("scrollY") > 300
        assert page.evaluate("document.querySelector('#settings details').open")
        assert errors == []
        watching.send_signal(signal.SIGINT)
        rest, _ = watching.communicate(timeout=PATIENCE_S)
        assert watching.returncode == 0 and "Traceback" not in rest
        page.wait_for_selector("#silent:not([hidden])")
    finally:
        watching.kill()
        watching.communicate()


def test_watching_writes_nothing(live, tmp_path, curriculum):
    run = tmp_path / "run"
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    for mode in (0o555, 0o755):
        os.chmod(run, mode)
        live._drawn = None  # As if all of it had changed.
        live._draw_at = 0.0
        live.update()
    assert live.num_drawn == 3
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == before
