"""Code that a run or a checkpoint names: it runs only if its user has run it before.

What a command line names is the user's own doing, and is noted: by file and content, in
the cache folder. A record from elsewhere may name any file of this machine.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from horizon_rl.support.errors import InputError
from horizon_rl.support.folders import cache_folder
from horizon_rl.support.named_code import code_digest, code_file


def trust_code(sources: Iterable[str]) -> None:
    """Note that the user runs this code."""
    for source in sources:
        # Who cannot keep a note is asked again.
        with suppress(OSError):
            note = _note(source)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()


def require_trust(owner: str | Path, sources: Iterable[str]) -> None:
    """Refuse code that the user has not run before, in `owner`'s name."""
    strange = [source for source in sources if not _note(source).exists()]
    if strange:
        raise InputError(
            f"{owner} names code that you have not run before: {', '.join(strange)}. It "
            "would run with your rights: read it first, then add --trust"
        )


def _note(source: str) -> Path:
    # By its place too: what the code imports lies beside it.
    identity = f"{code_file(source).resolve()}\n{code_digest(source)}"
    return cache_folder() / "trusted" / hashlib.sha256(identity.encode()).hexdigest()
