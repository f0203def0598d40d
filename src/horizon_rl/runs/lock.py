"""Who has a journal open: one process at a time goes on with a run."""

import time
from io import FileIO
from pathlib import Path
from warnings import warn

from horizon_rl.support.durable import fcntl
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import open_file


def lock(file: FileIO, path: Path) -> None:
    """Keep other processes from the journal at `path`; one that they have is refused."""
    patience = 50
    while fcntl:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # Who asks whether it is locked has it, too, for a moment.
            if not (patience := patience - 1):
                file.close()
                raise InputError(f"{path} is in use by another process") from error
            time.sleep(0.01)
        except OSError as error:  # As on some network file systems.
            return warn(
                f"{path}: no locks on this file system ({error.strerror}): see to it "
                "yourself that no other process goes on with the run",
                stacklevel=2,
            )


def is_locked(path: Path) -> bool:
    """Tell whether a process has the journal open for appending: its run is alive."""
    try:
        file = open_file(path)
    except (OSError, InputError):
        return False  # The reader reports why.
    with file:
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # No locks there: nobody can tell.
            pass
    return False
