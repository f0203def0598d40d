"""The campaign of mutations notices whatever a reader can do wrong."""

import os
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.campaign import mutate
from tests.campaign.inputs import Kind
from tests.campaign.mutations import forge_line, mutate_bytes, mutate_text

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


def test_mutations_repeat_and_differ():
    content = to_line({"phase": 3, "levels": {"mass": 0.5}, "words": ["a", "b"]})
    for change in (mutate_bytes, mutate_text, forge_line):
        tries = [
            [change(content, mutate.seeded("x", k)) for k in range(50)] for _ in "ab"
        ]
        assert tries[0] == tries[1] and len(set(tries[0])) > 10
    forged = {forge_line(content, mutate.seeded("x", k)) for k in range(50)}
    assert all(parse_line(line, "line") is not None for line in forged)
