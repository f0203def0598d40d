"""Campaigns notice whatever a reader or a resumed run does wrong; short ones run here."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
import grids
from killing import assert_ends_as
from tests.campaign import kill, mutate
from tests.campaign.mutations import (
    forge_json,
    forge_line,
    mutate_bytes,
    mutate_text,
)
from tests.campaign.readers import Kind, read_each, run_command

from horizon_rl import cli
from horizon_rl.runs.lines import parse_line, to_line
from horizon_rl.support.errors import InputError

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGALRM"),
    pytest.mark.filterwarnings("ignore:.*fork"),
]
SOUND = b"number = 3\n"


def outcomes(tmp_path: Path, react, *, sealed: bool = True) -> Counter:
    """Attack a reader that does something for all content but the sound one's."""
    file = tmp_path / "file"
    file.write_bytes(SOUND)

    def read():
        return "sound" if file.read_bytes() == SOUND else react()

    kind = Kind(file, read, lambda content, rng: content + b"x", sealed)
    found, _ = mutate.attack("toy", kind, range(3))
    assert file.read_bytes() == SOUND
    return found


def refuse():
    raise InputError("damaged")


def say():
    warnings.warn("damaged", stacklevel=1)
    return "less"


def fill_memory():
    raise MemoryError


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("react", "outcome"),
    [
        (refuse, "refused"),
        (say, "said"),
        (lambda: "sound", "same result"),
        (lambda: "another", "silent changes"),
        (lambda: 1 // 0, "tracebacks"),
        (fill_memory, "tracebacks"),
        (lambda: read_each(refuse, lambda: "sound"), "refused"),
        (lambda: read_each(refuse, lambda: 1 // 0), "tracebacks"),
    ],
)
def test_outcome_is_told(tmp_path, capfd, react, outcome):
    assert outcomes(tmp_path, react) == {outcome: 3}


def test_another_input_may_have_another_result(tmp_path):
    found = outcomes(tmp_path, lambda: "another", sealed=False)
    assert found == {"another result": 3}


def test_reader_that_hangs_or_dies_is_noticed(tmp_path, monkeypatch, capfd):
    assert outcomes(tmp_path, crash) == {"crashes": 1, "not tried": 2}
    monkeypatch.setattr(mutate, "PATIENCE_S", 0.1)
    assert outcomes(tmp_path, lambda: time.sleep(1000)) == {"hangs": 3}


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (refuse, "refused"),
        (say, "said"),
        (lambda: 1 // 0, "tracebacks"),
        (fill_memory, "tracebacks"),
    ],
)
def test_command_that_reads_is_noticed(tmp_path, monkeypatch, capfd, command, outcome):
    monkeypatch.setattr(cli, "_dispatch", lambda args: 0 * bool(command()))
    assert outcomes(tmp_path, lambda: run_command("study")) == {outcome: 3}


def test_mutations_repeat_and_differ():
    content = to_line({"phase": 3, "levels": {"mass": 0.5}, "words": ["a", "b"]})
    for change in (mutate_bytes, mutate_text, forge_line, forge_json):
        tries = [
            [change(content, mutate.seeded("x", k)) for k in range(50)] for _ in "ab"
        ]
        assert tries[0] == tries[1] and len(set(tries[0])) > 10
    forged = {forge_line(content, mutate.seeded("x", k)) for k in range(200)}
    records = [json.loads(line) for line in forged]
    assert any(record.get("phase") == 10**400 for record in records)
    assert any("x" in record for record in records)
    for line in forged:
        if b"0" * 400 not in line:  # Else it is refused, whatever its checksum.
            parse_line(line, "line")


# Kills.


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "checkpoint.json", "SHA256SUMS", "new"]
)
def test_other_bytes_of_a_checkpoint_are_noticed(trained, trained_copy, name):
    assert_ends_as(trained_copy, trained)
    with open(trained_copy / "checkpoints" / "phase-00000" / name, "ab") as file:
        file.write(b"x")
    with pytest.raises(AssertionError, match=f"phase-00000/{name}"):
        assert_ends_as(trained_copy, trained)


def test_other_metrics_are_noticed_but_not_their_seconds(trained, trained_copy):
    metrics = trained_copy / "metrics.jsonl"
    lines = [parse_line(line, "line") for line in metrics.read_bytes().splitlines()]
    lines[0]["collect_s"] += 1.0
    metrics.write_bytes(b"".join(map(to_line, lines)))
    assert_ends_as(trained_copy, trained)
    lines[0]["reward"] += 1.0
    metrics.write_bytes(b"".join(map(to_line, lines)))
    with pytest.raises(AssertionError, match=r"another metrics\.jsonl"):
        assert_ends_as(trained_copy, trained)


def test_rehearsals_that_end_otherwise_are_counted(tmp_path, monkeypatch, capfd):
    told = [
        {"kills": 3, "starts": 1, "problem": ""},
        {"kills": 2, "starts": 0, "problem": "another file"},
    ]
    done = SimpleNamespace(stdout="\n".join(map(json.dumps, told)), returncode=0)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    assert kill.kill_rehearsals(100, tmp_path) == (5, 1, 2, 1)
    done.returncode = 1
    assert kill.kill_rehearsals(100, tmp_path) == (5, 1, 2, 2)


def test_grid_that_cannot_finish_is_lost(tmp_path, monkeypatch, capfd):
    started = []

    def start(study: Path, *args):
        started.append(study)
        return SimpleNamespace(
            pid=os.getpid(), returncode=1, communicate=lambda: ("out of memory", None)
        )

    monkeypatch.setattr(grids, "start_grid", start)
    monkeypatch.setattr(grids, "kill_at_random", lambda *args: 0)
    assert kill.kill_grids(4, tmp_path) == (0, None, 1, 1)
    assert len(started) == kill.MAX_GRID_STARTS
    assert "out of memory" in capfd.readouterr().err


# Short campaigns, as a user starts them.


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ("mutate", "--each", "20"),
        ("kill", "--kills", "2", "--only", "rehearse"),
        ("kill", "--kills", "2", "--only", "train"),
    ],
    ids=" ".join,
)
def test_short_campaign_finds_nothing(args):
    command = [sys.executable, "-m", "tests.campaign", *args]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()]
    found = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    bad = {*mutate.BAD, "not equal to the bit"} & found[0].keys()
    assert bad and all(row[name] == "0" for row in found for name in bad)
    if args[0] == "kill":
        assert int(found[0]["kills"]) >= 2 and int(found[0]["runs"]) >= 1
    else:
        assert {row["mutations"] for row in found[:-1]} == {"20"}
