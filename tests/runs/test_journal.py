"""The journal is the run: what it survives, and what it refuses."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from threading import Timer

import pytest
from evidence import FALLS, GOOD

from horizon_rl.curriculum import CheckpointRef, CurriculumCfg, Paper
from horizon_rl.runs.journal import (
    Journal,
    committed_folder,
    create_curriculum,
    recorded_checkpoints,
    replay,
    resume_curriculum,
)
from horizon_rl.runs.lines import parse_line, to_line
from horizon_rl.runs.lock import is_locked
from horizon_rl.runs.paths import CHECKPOINTS, INITIAL, JOURNAL
from horizon_rl.support.errors import InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of six phases."""
    path = tmp_path / "journal.jsonl"
    curriculum = create_curriculum(path, ["mass", "com"], Paper(), {"seed": 3})
    for evidence in (GOOD, FALLS, GOOD, GOOD, FALLS, GOOD):
        curriculum.tell(evidence)
    curriculum.close()
    return path


def edit_line(path: Path, number: int, old: str, new: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    path.write_text("".join(lines))


def test_header_says_what_the_run_was_started_with(path):
    header = replay(path).header
    assert header.schema == 4
    assert header.groups == ("mass", "com")
    assert header.curriculum == CurriculumCfg()
    assert header.context == {"seed": 3}


def test_every_line_is_plain_json_with_reason_and_levels(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 7
    failed = lines[2]
    assert failed["decision"]["action"] == "rollback"
    assert failed["proposal"]["levels"] == {"mass": 0.05, "com": 0.0}
    assert "episode length 0.6 (at least 0.85)" in failed["decision"]["reason"]


def test_resumed_run_goes_on_as_if_never_stopped(path, tmp_path):
    whole = create_curriculum(tmp_path / "whole.jsonl", ["mass", "com"], Paper())
    for evidence in (GOOD, FALLS, GOOD, GOOD, FALLS, GOOD, GOOD, FALLS):
        whole.tell(evidence)
    resumed = resume_curriculum(path)
    resumed.tell(GOOD)
    resumed.tell(FALLS)
    assert resumed.state == whole.state
    assert resumed.entries == whole.entries


def test_cut_off_at_any_byte_it_is_read_up_to_the_last_whole_line(path):
    data = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    first = data.index(b"\n") + 1
    for size in range(len(data)):
        path.write_bytes(data[:size])
        if size < first:
            with pytest.raises(InputError, match="cut off within its first line"):
                replay(path)
            continue
        whole_lines = data[:size].count(b"\n")
        torn = not data[:size].endswith(b"\n")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert len(replay(path).entries) == whole_lines - 1
        assert len(caught) == torn
        if torn:
            expected = f"{path}:{whole_lines + 1}: torn last line dropped"
            assert str(caught[0].message).startswith(expected)


def test_torn_line_is_cut_away_before_the_next_is_written(path):
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.warns(match="torn last line dropped"):
        curriculum = resume_curriculum(path)
    curriculum.tell(GOOD)
    curriculum.close()
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("number", "old", "new", "message"),
    [
        (4, "{", "garbage {", ":4: not JSON"),
        (4, '"length":0.95', '"length":0.96', ":4: checksum does not match"),
        (4, '"length":0.95', '"length":NaN', ":4: not JSON: NaN"),
        (1, '"schema":4', '"schema":5', ":1: schema 5, written by horizon-rl"),
        (1, '"schema":4', '"shema":1', ":1: no schema version"),
        (1, '"alpha":0.4', '"alpha":0.5', ":1: checksum does not match"),
    ],
)
def test_damaged_line_is_an_error_that_names_it(path, number, old, new, message):
    edit_line(path, number, old, new)
    before = path.read_bytes()
    with pytest.raises(InputError, match=message):
        resume_curriculum(path)
    assert path.read_bytes() == before


def test_garbage_bytes_in_the_middle_are_an_error_that_names_the_line(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\xff\x00\xfe\n", *lines[3:]]))
    with pytest.raises(InputError, match=":4: not JSON"):
        replay(path)


@pytest.mark.parametrize("keep", [(0, 1, 3), (0, 1, 2, 2), (0, 2)])
def test_missing_or_doubled_line_is_noticed(path, keep):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in keep))
    with pytest.raises(InputError, match="missing, doubled or altered"):
        replay(path)


def test_decision_that_does_not_follow_from_its_evidence_is_refused(path):
    lines = path.read_bytes().splitlines(keepends=True)
    record = parse_line(lines[2], "here")
    record["decision"]["action"] = "commit"
    path.write_bytes(b"".join([*lines[:2], to_line(record), *lines[3:]]))
    with pytest.raises(InputError, match=":3: the recorded decision"):
        replay(path)


def test_forged_line_without_a_reason_is_refused(path):
    lines = path.read_bytes().splitlines(keepends=True)
    record = parse_line(lines[2], "line")
    del record["proposal"]["reason"]
    path.write_bytes(b"".join([*lines[:2], to_line(record), *lines[3:]]))
    with pytest.raises(InputError, match="journal.jsonl:3: .*None is not a string"):
        replay(path)


@pytest.mark.parametrize("value", ["x", ["a"], {"name": "x"}, {"name": []}, True])
def test_forged_checkpoint_is_refused_before_it_is_looked_for(path, value):
    lines = path.read_bytes().splitlines(keepends=True)
    record = parse_line(lines[2], "line") | {"checkpoint": value}
    path.write_bytes(b"".join([*lines[:2], to_line(record), *lines[3:]]))
    with pytest.raises(InputError, match="journal.jsonl:3: "):
        recorded_checkpoints(path)


def test_forged_count_beyond_all_bounds_is_refused(path):
    lines = path.read_bytes().splitlines(keepends=True)
    record = parse_line(lines[2], "line")
    record["evidence"]["env_steps"] = 10**400
    path.write_bytes(b"".join([*lines[:2], to_line(record), *lines[3:]]))
    with pytest.raises(InputError, match="journal.jsonl:3: .*not a JSON number"):
        replay(path)


def test_empty_journal_is_an_error(path):
    path.write_bytes(b"")
    with pytest.raises(InputError, match="empty, or cut off"):
        replay(path)


def test_existing_journal_is_never_overwritten(path):
    before = path.read_bytes()
    with pytest.raises(InputError, match="already holds a run"):
        create_curriculum(path, ["mass"])
    assert path.read_bytes() == before


def test_second_process_on_the_same_journal_is_refused(path):
    journal, _ = Journal.resume(path)
    code = (
        "import sys; from pathlib import Path; from horizon_rl.runs.journal import *\n"
        "try: resume_curriculum(Path(sys.argv[1]))\n"
        "except InputError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(path)]
    other = subprocess.run(command, capture_output=True, text=True)
    journal.close()
    assert "is in use by another process" in other.stdout, other.stderr


def test_journal_is_locked_while_its_run_is_alive(path):
    assert not is_locked(path)
    journal, _ = Journal.resume(path)
    assert is_locked(path)
    code = (
        "import sys; from pathlib import Path; from horizon_rl.runs.lock import *\n"
        "print(is_locked(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(path)]
    other = subprocess.run(command, capture_output=True, text=True)
    assert other.stdout == "True\n", other.stderr
    journal.close()
    assert not is_locked(path)


def test_file_system_without_locks_is_said_and_used(path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="no locks on this file system .*No locks"):
        curriculum = resume_curriculum(path)
    curriculum.tell(GOOD)
    curriculum.close()
    assert len(replay(path).entries) == 7 and not is_locked(path)


def test_who_asks_at_the_same_moment_does_not_keep_a_run_from_going_on(path):
    with open(path, "rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        Timer(0.1, fcntl.flock, (asking, fcntl.LOCK_UN)).start()
        Journal(path).close()


def test_asking_whether_it_is_locked_neither_locks_nor_reads_it(path):
    assert not is_locked(path)
    before = path.read_bytes()
    curriculum = resume_curriculum(path)
    assert is_locked(path) and is_locked(path)
    curriculum.tell(GOOD)
    curriculum.close()
    assert path.read_bytes().startswith(before)


def test_run_goes_on_from_the_checkpoint_that_its_journal_names(tmp_path):
    path, checkpoints = tmp_path / JOURNAL, tmp_path / CHECKPOINTS
    assert committed_folder(tmp_path) is None
    curriculum = create_curriculum(path, ["mass"])
    assert committed_folder(tmp_path) is None
    for name in (INITIAL, "phase-0", "phase-9"):
        (checkpoints / name).mkdir(parents=True)
    assert committed_folder(tmp_path) == checkpoints / INITIAL
    curriculum.tell(GOOD, CheckpointRef("phase-0", "0123"))
    curriculum.tell(FALLS)
    assert committed_folder(tmp_path) == checkpoints / "phase-0"


def test_decide_says_what_tell_will_and_changes_nothing(tmp_path):
    path = tmp_path / "journal.jsonl"
    curriculum = create_curriculum(path, ["mass"])
    state, data = curriculum.state, path.read_bytes()
    assert curriculum.decide(GOOD).keeps_weights
    assert curriculum.state == state and path.read_bytes() == data
    for evidence, name in ((GOOD, "phase-0"), (FALLS, None)):
        decision = curriculum.decide(evidence)
        kept = CheckpointRef(name, "0123") if name else None
        assert curriculum.tell(evidence, kept) == decision
    named = [e.checkpoint and e.checkpoint.name for e in replay(path).entries]
    assert named == ["phase-0", None]
    assert curriculum.checkpoint == CheckpointRef("phase-0", "0123")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a file size limit")
def test_line_that_does_not_fit_on_the_disk_leaves_no_trace(path):
    import resource

    curriculum = resume_curriculum(path)
    state, data = curriculum.state, path.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:  # Half of the next line fits.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(data) + 200, before[1]))
        with pytest.raises(OSError, match="File too large"):
            curriculum.tell(GOOD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert curriculum.state == state and path.read_bytes() == data
    curriculum.tell(GOOD)
    curriculum.close()
    assert len(replay(path).entries) == 7


def test_failed_sync_leaves_no_trace(path, monkeypatch):
    curriculum = resume_curriculum(path)
    state, data = curriculum.state, path.read_bytes()

    def broken(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        curriculum.tell(GOOD)
    monkeypatch.undo()
    assert curriculum.state == state and path.read_bytes() == data
    curriculum.tell(GOOD)
    assert len(replay(path).entries) == 7


def test_of_many_who_start_a_journal_at_once_one_wins(tmp_path):
    path = tmp_path / "journal.jsonl"
    code = (
        "import sys; from pathlib import Path; from horizon_rl.runs.journal import *\n"
        "from horizon_rl.support.errors import InputError\n"
        "try: create_curriculum(Path(sys.argv[1]), ['mass']); print('won')\n"
        "except InputError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(path)]
    starts = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    said = [process.communicate()[0].strip() for process in starts]
    assert said.count("won") == 1
    assert all("already holds a run" in text for text in said if text != "won"), said
    assert replay(path).entries == ()


def test_better_wording_does_not_make_old_journals_unreadable(path):
    lines = path.read_bytes().splitlines(keepends=True)
    record = parse_line(lines[2], "here")
    record["decision"]["reason"] = "said otherwise"
    record["decision"]["verdict"]["reason"] = "said otherwise"
    record["proposal"]["reason"] = "said otherwise"
    path.write_bytes(b"".join([*lines[:2], to_line(record), *lines[3:]]))
    assert len(replay(path).entries) == 6
