"""Telemetry that is damaged: it is said, the rest counts, and no run stops for it."""

import json
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evidence import FALLS, GOOD

from horizon_rl.curriculum import CheckpointRef, Evidence, Paper
from horizon_rl.runs.budget import Budget, write_budget
from horizon_rl.runs.directory import PhaseTimes, RunDirectory
from horizon_rl.runs.journal import create_curriculum, replay, resume_curriculum
from horizon_rl.runs.lines import parse_line, to_line
from horizon_rl.runs.paths import BUDGET, METRICS, TIMES
from horizon_rl.runs.read import read_run
from horizon_rl.support.records import encode

TRAIN = {"num_envs": 8, "steps": 5000, "learner": {"ppo": {"num_steps": 5}}}
STRAY = (
    b"[1, 2]\n",
    b'{"phase": "one"}\n',
    b'{"number": 3}\n',
    b'{"phase": null, "train_s": 1}\n',
    b'{"phase": 0, "train_s": 1e999, "probe_s": 0.0, "settle_s": 0.0}\n',
    b'{"phase": 0, "train_s": -5.0, "probe_s": 0.0, "settle_s": 0.0}\n',
    b'{"phase": 0, "train_s": 5.0, "probe_s": 0.0, "settle_s": 0.0, "more": 1}\n',
    b"\xff\xfe\x00\n",
    b"\n",
    b"[" * 100_000 + b"\n",
    b"9" * 5000 + b"\n",
)


@pytest.fixture
def run(tmp_path) -> Path:
    """Write a run of two phases, interrupted in its third."""
    directory = RunDirectory.create(tmp_path / "run")
    context = {"train": TRAIN, "ranks": 1}
    curriculum = create_curriculum(directory.journal, ["mass"], Paper(), context)
    for phase, evidence in enumerate((GOOD, FALLS)):
        times = PhaseTimes(phase=phase, train_s=3.25, probe_s=2.5, settle_s=1.125)
        directory.write_times(times)
        kept = CheckpointRef("phase-00000", "0" * 64)
        curriculum.tell(replace(evidence, iterations=3), None if phase else kept)
    iterations = (*(e.evidence.iterations for e in curriculum.entries), 2)
    phases = [phase for phase, count in enumerate(iterations) for _ in range(count)]
    for number, phase in enumerate(phases, start=1):
        directory.write_metrics(
            {
                **{"phase": phase, "number": number, "collect_s": 0.5, "learn_s": 0.25},
                **{
                    "reward": 0.125,
                    "tracking_error": None,
                    "figures": {"entropy": 2.0},
                },
            }
        )
    write_budget(directory.path, Budget(steps=6000, minutes=90.5))
    curriculum.close()
    return directory.path


def look(run: Path) -> tuple[str, list[str]]:
    """Return all that is shown of a run, and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        files = read_run(run / "journal.jsonl")
        shown = encode(files.summary)
    shown["age_s"] = 0.0
    metrics = [dict(line) for line in files.metrics]
    return json.dumps([shown, metrics], default=str), [str(w.message) for w in said]


def test_sound_files_are_read_without_a_word(run):
    shown, said = look(run)
    assert said == []
    assert "90.5" in shown and "6.5" in shown


@pytest.mark.parametrize("name", [METRICS, TIMES])
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("stray", STRAY, ids=range(len(STRAY)))
def test_stray_line_is_left_out_with_a_warning(run, name, place, stray):
    expected, _ = look(run)
    sound = (run / name).read_bytes()
    (run / name).write_bytes(stray + sound if place == "first" else sound + stray)
    shown, said = look(run)
    assert shown == expected
    assert len(said) == 1 and f"{name}: 1 damaged line" in said[0]
    with pytest.warns(UserWarning, match=f"{name}: 1 damaged line"):
        seconds = RunDirectory(run).pick_up(read_run(run / "journal.jsonl").entries)
    assert seconds == 2 * 6.875
    assert look(run)[1] == [], "what goes on is sound"


@pytest.mark.parametrize("name", [METRICS, TIMES, BUDGET])
def test_no_mutation_changes_what_is_shown_without_a_word(run, name):
    rng = np.random.default_rng(0)
    expected, _ = look(run)
    whole = (run / name).read_bytes()
    for _ in range(300):
        changed, place = bytearray(whole), int(rng.integers(len(whole)))
        match rng.integers(4):
            case 0:
                changed[place] ^= 1 << rng.integers(8)
            case 1:
                del changed[place]
            case 2:
                changed.insert(place, rng.integers(256))
            case 3:
                del changed[place : place + int(rng.integers(1, 40))]
        (run / name).write_bytes(changed)
        shown, said = look(run)
        assert shown == expected or said, bytes(changed)


def take_checksums_out(run: Path) -> None:
    for name in (METRICS, TIMES, BUDGET):
        lines = (run / name).read_text().splitlines()
        old = [{k: v for k, v in json.loads(x).items() if k != "crc"} for x in lines]
        text = "".join(json.dumps(line) + "\n" for line in old)
        (run / name).write_text(text.rstrip() if name == BUDGET else text)


def test_lines_of_older_versions_have_no_checksum(run):
    journal = run / "journal.jsonl"
    header, *lines = journal.read_bytes().splitlines(keepends=True)
    old = {**parse_line(header, ""), "schema": 3}
    journal.write_bytes(to_line(old) + b"".join(lines))
    expected, _ = look(run)
    take_checksums_out(run)
    assert look(run) == (expected, [])


def test_lines_without_a_checksum_are_damaged_where_the_journal_is_newer(run):
    take_checksums_out(run)
    _, said = look(run)
    assert len(said) == 3
    for name, words in zip((TIMES, METRICS, BUDGET), said, strict=True):
        assert name in words and "damaged" in words
    with pytest.warns(UserWarning, match=f"{BUDGET} is damaged"):
        assert read_run(run / "journal.jsonl").budget == Budget(steps=5000)


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "mine").touch()


def as_loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def as_dangling_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("nowhere/to/be/found")


@pytest.mark.parametrize("name", [METRICS, TIMES, BUDGET])
@pytest.mark.parametrize("spoil", [as_folder, as_loop, as_dangling_link])
def test_run_goes_on_where_telemetry_is_no_file(run, name, spoil):
    spoil(run / name)
    assert any(name in words for words in look(run)[1])
    directory, entries = RunDirectory(run), replay(run / "journal.jsonl").entries
    with pytest.warns(UserWarning, match=f"{name} cannot be read: it is {name}.damage"):
        directory.pick_up(entries)
    # It stays: somebody may have put it there.
    assert os.path.lexists(run / f"{name}.damaged")
    directory.write_metrics({"phase": 2, "number": 7})
    directory.write_times(PhaseTimes(phase=2, train_s=1.0, probe_s=0.0, settle_s=0.0))
    write_budget(run, Budget(steps=7000))
    assert (run / name).is_file()
    spoil(run / name)
    with pytest.warns(UserWarning, match=f"{name}.damaged1"):
        directory.pick_up(entries)


def test_line_without_a_checksum_does_not_follow_one_that_has_it(run):
    expected, _ = look(run)
    forged = '{"phase": 1, "train_s": 9000.0, "probe_s": 0.0, "settle_s": 0.0}\n'
    with open(run / TIMES, "a") as file:
        file.write(forged)
    shown, said = look(run)
    assert shown == expected and "times.jsonl: 1 damaged line" in said[0]


def test_line_that_is_doubled_counts_once(run):
    expected, _ = look(run)
    first = (run / TIMES).read_bytes().splitlines(keepends=True)[0]
    with open(run / TIMES, "ab") as file:
        file.write(first)
    assert look(run)[0] == expected
    entries = read_run(run / "journal.jsonl").entries
    assert RunDirectory(run).pick_up(entries) == 2 * 6.875


def test_torn_last_line_is_said_unless_the_run_is_alive(run):
    with open(run / METRICS, "ab") as file:
        file.write(b'{"phase": 2, "num')
    assert "metrics.jsonl: 1 damaged line" in look(run)[1][0]
    alive = resume_curriculum(run / "journal.jsonl")
    assert look(run)[1] == []
    alive.close()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"steps": "x"}', '{"steps": 1, "minutes": 1e999}', "", "\xff"]
)
def test_damaged_budget_gives_way_to_the_first(run, text):
    (run / BUDGET).write_text(text, "latin-1")
    with pytest.warns(UserWarning, match=f"{BUDGET} is damaged"):
        assert read_run(run / "journal.jsonl").budget == Budget(steps=5000)


def test_training_goes_on_beside_damaged_telemetry(tmp_path, capsys):
    pytest.importorskip("torch")
    from horizon_rl.cli import main

    run = tmp_path / "run"
    args = ["train", "--preset", "smoke", "--run", str(run), "--table", "0"]
    assert main([*args, "--device", "cpu", "--steps", "3000"]) == 0
    twin = Path(shutil.copytree(run, tmp_path / "twin"))
    for name in (METRICS, TIMES, BUDGET):
        with open(twin / name, "ab") as file:
            file.write(b'{"phase": "x"}\n')
    capsys.readouterr()
    for path in (run, twin):
        resume = ["train", "--resume", str(path), "--steps", "6000", "--table", "0"]
        assert main([*resume, "--device", "cpu"]) == 0
    err = capsys.readouterr().err
    for name in (METRICS, TIMES, BUDGET):
        assert name in err
    one, other = ((path / "journal.jsonl").read_bytes() for path in (run, twin))
    assert one == other


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("journal.jsonl", -1, "has times of phases that the journal lacks"),
        ("metrics.jsonl", -1, "metrics.jsonl: lines are missing at its end"),
        ("metrics.jsonl", 0, "metrics.jsonl: lines are missing or doubled"),
        ("metrics.jsonl", 1, "metrics.jsonl: lines are missing or doubled"),
        ("metrics.jsonl", 3, "metrics.jsonl: lines are missing or doubled"),
        ("metrics.jsonl", slice(None), "metrics.jsonl: lines are missing at its end"),
        ("times.jsonl", 0, "times.jsonl lacks 1 judged phase(s)"),
        ("times.jsonl", -1, "times.jsonl lacks 1 judged phase(s)"),
        ("times.jsonl", slice(None), "times.jsonl lacks 2 judged phase(s)"),
    ],
)
def test_whole_lines_that_are_missing_are_said(run, name, line, words):
    lines = (run / name).read_text().splitlines(keepends=True)
    # Of the phase under way, lines may be missing: it is not judged yet.
    lines = lines[:-2] if name == METRICS else lines
    del lines[line]
    (run / name).write_text("".join(lines))
    assert words in look(run)[1][0]


@pytest.mark.parametrize("name", [METRICS, TIMES])
def test_file_that_is_gone_is_missed_where_a_run_keeps_its_policy(run, name):
    (run / name).unlink()
    assert look(run)[1] == []  # A rehearsal has none.
    (run / "checkpoints/initial").mkdir(parents=True)
    assert name in look(run)[1][0]


def test_phase_that_was_killed_before_it_had_times_is_said_once(run):
    lines = (run / TIMES).read_bytes().splitlines(keepends=True)
    (run / TIMES).write_bytes(lines[1])
    alive = resume_curriculum(run / "journal.jsonl")
    assert look(run)[1] == [], "it may be about to write them"
    entries = alive.entries
    alive.close()
    with pytest.warns(UserWarning, match=r"lacks 1 judged phase.* --minutes does not"):
        assert RunDirectory(run).pick_up(entries) == 6.875
    assert look(run)[1] == []
    assert RunDirectory(run).pick_up(entries) == 6.875


def test_line_of_a_refused_gradient_is_not_missed(tmp_path):
    directory = RunDirectory.create(tmp_path / "run")
    context = {"train": TRAIN, "ranks": 1}
    curriculum = create_curriculum(directory.journal, ["mass"], Paper(), context)
    kept = CheckpointRef("phase-00000", "0" * 64)
    curriculum.tell(replace(GOOD, iterations=2), kept)
    hopeless = Evidence(length=None, tracking_error=None, iterations=2, aborted=True)
    for _ in range(2):
        curriculum.tell(hopeless)
    curriculum.close()
    # Iterations 4 and 6 are the last of their phases.
    for number, phase in ((1, 0), (2, 0), (3, 1), (5, 2)):
        directory.write_metrics({"phase": phase, "number": number})
    assert look(directory.path)[1] == []
    lines = (directory.path / METRICS).read_text().splitlines(keepends=True)
    (directory.path / METRICS).write_text("".join(lines[:3]))
    assert "lines are missing at its end" in look(directory.path)[1][0]


def test_line_of_a_phase_that_a_look_aborted_is_missed(tmp_path):
    directory = RunDirectory.create(tmp_path / "run")
    context = {"train": TRAIN, "ranks": 1}
    curriculum = create_curriculum(directory.journal, ["mass"], Paper(), context)
    curriculum.tell(replace(GOOD, iterations=2), CheckpointRef("phase-00000", "0" * 64))
    curriculum.tell(replace(FALLS, iterations=2, aborted=True))
    curriculum.close()
    for number, phase in ((1, 0), (2, 0), (3, 1), (5, 2)):
        directory.write_metrics({"phase": phase, "number": number})
    assert "lines are missing or doubled" in look(directory.path)[1][0]
