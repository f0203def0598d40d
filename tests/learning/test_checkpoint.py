"""Checkpoints that everyone can trust."""

import hashlib
import json

import pytest
import torch

from horizon_rl.learning.checkpoint import (
    RECORD,
    WEIGHTS,
    CheckpointRecord,
    fill_checkpoint,
    load_checkpoint,
)
from horizon_rl.support.durable import SUMS, write_directory
from horizon_rl.support.errors import InputError

RECORD_OF = CheckpointRecord(
    numbers={"learning_rate": 0.001},
    counters={"iteration": 7},
    seed=3,
    config={"a": [1, 2]},
    catalogue={},
    levels={"mass": 0.5},
)


@pytest.fixture
def path(tmp_path):
    tensors = {"x": torch.arange(6.0).reshape(2, 3), "count": torch.tensor(4)}
    folder = tmp_path / "checkpoint"
    write_directory(folder, lambda aside: fill_checkpoint(aside, tensors, RECORD_OF))
    return folder


def test_round_trip_is_exact(path):
    checkpoint = load_checkpoint(path)
    assert torch.equal(checkpoint.tensors["x"], torch.arange(6.0).reshape(2, 3))
    assert checkpoint.tensors["count"].item() == 4
    assert checkpoint.record.counters == {"iteration": 7}
    assert checkpoint.record.levels == {"mass": 0.5}


def test_it_consists_of_safetensors_and_json_alone(path):
    assert sorted(p.name for p in path.iterdir()) == [SUMS, RECORD, WEIGHTS]


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        (WEIGHTS, lambda data: data[:-1], "damaged: its checksum"),
        (WEIGHTS, lambda data: data[:-1] + b"\xff", "damaged: its checksum"),
        (WEIGHTS, lambda data: b"", "damaged: its checksum"),
        (RECORD, lambda data: data[: len(data) // 2], "is damaged"),
        (RECORD, lambda data: b"", "is damaged"),
        (RECORD, lambda data: b"[]", "is damaged"),
        (
            RECORD,
            lambda d: d.replace(b'"schema":1', b'"schema":9'),
            "schema 9.*upgrade",
        ),
        (
            RECORD,
            lambda data: data.replace(b'"seed"', b'"sead"'),
            "did you mean 'seed'",
        ),
    ],
)
def test_damage_is_refused_with_file_and_cause(path, file, damage, message):
    (path / file).write_bytes(damage((path / file).read_bytes()))
    with pytest.raises(InputError, match=message) as error:
        load_checkpoint(path)
    assert str(path / file) in str(error.value)


def test_missing_files_are_named(path):
    with pytest.raises(InputError, match="A checkpoint is a directory with"):
        load_checkpoint(path / "nowhere")
    (path / WEIGHTS).unlink()
    with pytest.raises(InputError, match=f"cannot read {path / WEIGHTS}"):
        load_checkpoint(path)


def test_pickle_in_disguise_is_not_loaded(path):
    torch.save({"x": 1}, path / WEIGHTS)
    record = json.loads((path / RECORD).read_text())
    data = (path / WEIGHTS).read_bytes()
    record["weights_sha256"] = hashlib.sha256(data).hexdigest()
    (path / RECORD).write_text(json.dumps(record))
    with pytest.raises(InputError, match="not a safetensors file"):
        load_checkpoint(path)
