"""Files of others that are too large, too deep or full of numbers that are none."""

import os
import resource
import signal
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from horizon_rl.domains import load_catalogue
from horizon_rl.evaluation.success import read_json
from horizon_rl.grid.folder import read_collected
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.runs.budget import read_budget
from horizon_rl.runs.read import read_run
from horizon_rl.runs.results import read_results
from horizon_rl.runs.telemetry import read_times
from horizon_rl.support.durable import check_directory
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import MAX_ARRAYS, MAX_TEXT, read_arrays, read_text
from horizon_rl.support.records import dumps, loads
from horizon_rl.support.toml_text import toml_tables


@pytest.mark.parametrize(
    "text",
    [
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "9" * 400,
        "9" * 5000,
        "[" * 100_000,
        "{",
        "",
    ],
)
def test_json_that_we_never_write_is_refused(text):
    with pytest.raises(InputError, match="not JSON"):
        loads(text)


def test_numbers_survive_to_the_bit():
    numbers = [0.1, 1e308, -5e-324, 2**63, -1]
    assert loads(dumps(numbers)) == numbers


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 100_000, "a ="])
def test_toml_that_cannot_be_parsed_is_refused_with_its_file(text):
    with pytest.raises(InputError, match="mine.toml: not valid TOML"):
        with toml_tables(text, "mine.toml"):
            pass


def test_text_that_is_too_large_is_not_read(tmp_path):
    file = tmp_path / "catalogue.toml"
    with open(file, "wb") as opened:
        opened.truncate(1 << 40)
    tracemalloc.start()
    with pytest.raises(InputError, match="larger than 4 MB"):
        read_text(file)
    with pytest.raises(InputError, match="cannot read catalogue .* larger than 4 MB"):
        load_catalogue(file)
    assert tracemalloc.get_traced_memory()[1] < 4 * MAX_TEXT
    tracemalloc.stop()


def as_pipe(file: Path) -> None:
    os.mkfifo(file)


def as_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def as_gigabytes(file: Path) -> None:
    with open(file, "wb") as opened:
        opened.truncate(3 << 30)


READERS = {
    "budget.json": lambda file: read_budget(file.parent),
    "results.json": lambda file: read_results(file.parent),
    "journal.jsonl": lambda file: read_run(file),
    "times.jsonl": lambda file: read_times(file.parent),
    "SHA256SUMS": lambda file: check_directory(file.parent),
    "phase-00000.npz": read_arrays,
    "checkpoint.json": lambda file: load_checkpoint(file.parent),
    "weights.safetensors": lambda file: load_checkpoint(file.parent),
    "evaluation.json": read_json,
    "records.jsonl": read_collected,
}


@pytest.mark.parametrize("spoil", [as_pipe, as_device, as_gigabytes])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_or_too_large_is_not_read(tmp_path, monkeypatch, name, spoil):
    monkeypatch.setattr("horizon_rl.runs.journal.MAX_LINE", 1 << 20)
    monkeypatch.setattr("horizon_rl.runs.lines.MAX_LINE", 1 << 20)
    monkeypatch.setattr("horizon_rl.support.reading.MAX_LINE", 1 << 20)
    (tmp_path / "checkpoint.json").write_text("{}")
    (tmp_path / name).unlink(missing_ok=True)
    spoil(tmp_path / name)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # Nobody writes to the pipe.
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("waits"))
    signal.alarm(20)
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), limits[1]))
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with suppress(InputError) if name in SAID else pytest.raises(InputError):
                READERS[name](tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert [name in str(words.message) for words in said] == [True] * (name in SAID)


SAID = ("budget.json", "results.json", "times.jsonl")
"""Of these, what is damaged is left out with a warning."""


def test_small_file_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(
    tmp_path,
):
    file = tmp_path / "phase-00000.npz"
    np.savez_compressed(file, window_length=np.zeros(MAX_ARRAYS // 8 + 1))
    assert file.stat().st_size < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="its arrays take 256 MB"):
        read_arrays(file)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
