"""Whether a checkpoint is what was written: by its run's journal, and by its checksums."""

from pathlib import Path
from typing import Literal
from warnings import warn

from horizon_rl.runs.journal import recorded_checkpoints
from horizon_rl.runs.paths import journal_of, run_of
from horizon_rl.support.durable import SUMS, check_directory, digest_directory
from horizon_rl.support.errors import InputError

Witness = Literal["its run's journal", "its checksums", "nothing"]
"""What a checkpoint was compared with; a copy by an older version has no witness."""


def verify_checkpoint(folder: Path) -> Witness:
    """Refuse a checkpoint that was altered; say what told so.

    One that lies in a run and that no line of the journal names is compared with its
    own checksums. Without any a warning says so: the first versions wrote none, and
    nothing in their files tells them from a copy that has lost them.
    """
    if not folder.is_dir():
        return "nothing"  # Who reads it says what is missing.
    run = run_of(folder)
    digest = recorded_checkpoints(journal_of(run)).get(folder.name) if run else None
    if run is None or digest is None:
        if check_directory(folder):
            return "its checksums"
        warn(
            f"{folder} has no {SUMS}: only its weights are verified, its settings are "
            "not. Unless an old version wrote it, copy the checkpoint once more",
            stacklevel=2,
        )
        return "nothing"
    if digest_directory(folder) != digest:
        check_directory(folder)  # Names the file, if it can.
        raise InputError(
            f"{folder} is damaged: its files are not those that {journal_of(run)} names"
        )
    return "its run's journal"
