"""What a checkpoint is compared with, and what is said where there is nothing."""

import shutil
import warnings
from pathlib import Path

import pytest

from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.runs.directory import RunDirectory
from horizon_rl.support.errors import InputError


@pytest.fixture
def copy(tmp_path) -> Path:
    """Return a copy of a checkpoint, outside of its run."""
    directory = RunDirectory.create(tmp_path / "run")
    fill = lambda folder: (folder / "checkpoint.json").write_text("0.25")  # noqa: E731
    named = directory.write_checkpoint(0, fill)
    return Path(shutil.copytree(directory.checkpoint(named), tmp_path / "copy"))


def test_copy_is_verified_by_its_checksums_without_a_word(copy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verify_checkpoint(copy) == "its checksums"
    (copy / "checkpoint.json").write_text("0.95")
    with pytest.raises(InputError, match="checkpoint.json is damaged"):
        verify_checkpoint(copy)


def test_copy_that_has_lost_its_checksums_is_said(copy):
    (copy / "SHA256SUMS").unlink()
    (copy / "checkpoint.json").write_text("0.95")
    with pytest.warns(UserWarning, match="copy has no SHA256SUMS: only its weights"):
        assert verify_checkpoint(copy) == "nothing"
