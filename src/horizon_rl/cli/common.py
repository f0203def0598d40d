"""What several commands share."""

import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue
from horizon_rl.policies.shipped import RUN, model_names, model_path
from horizon_rl.runs.paths import journal_of, journals_under, last_written
from horizon_rl.show.table import Table, print_table
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode

LOGS = Path("logs")

CatalogueFlag = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="NAME|FILE",
        help="Catalogue: `extended`, which adds the groups latency and sensing, or a TOML "
        "file of your own; without it, the paper's seven groups.",
    ),
]
"""Option of every command that takes a catalogue."""

RunArgument = Annotated[
    str | None,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="[RUN]",
        help_behavior_hint="",
        help="Directory of a training run or rehearsal, its journal, or a shipped policy "
        "that came of one; without it, the run under logs/ that was last written to.",
    ),
]
"""Argument of the commands that show one run."""


def read_catalogue(source: Path | None) -> Catalogue:
    """Load the catalogue of that name or file, or the paper's where none is given."""
    return load_catalogue(source) if source else paper_catalogue()


def new_run_path(folder: Path, label: str = "") -> Path:
    """Name a directory for a run by date and time; never one that exists."""
    stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (label and f"_{label}")
    names = (stamp if i == 1 else f"{stamp}-{i}" for i in count(1))
    return next(path for name in names if not (path := folder / name).exists())


def split_name(text: str) -> tuple[str | None, str]:
    """Split NAME=SOURCE, where a file may itself have such a name: lr=1.onnx."""
    named = re.fullmatch(r"([\w.+-]+)=(.+)", text)
    is_file = Path(text).exists() or Path(text.rpartition(":")[0]).is_file()
    return (named[1], named[2]) if named and not is_file else (None, text)


def check_outputs(figures: Path | None, json: Path | None) -> None:
    """Refuse places that nothing can be written to before the long work begins."""
    if figures and figures.exists() and not figures.is_dir():
        raise InputError(f"--figures {figures}: a file, not a folder")
    if json:
        check_file("--json", json)


def check_file(flag: str, path: Path) -> None:
    """Refuse a place where no file can be."""
    if not path.parent.is_dir():
        raise InputError(f"{flag} {path}: no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{flag} {path}: a folder, not a file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{flag} {path}: {path.parent} cannot be written to")


def check_picture(path: Path) -> None:
    """Refuse a place where no PNG file can be."""
    if path.suffix.lower() != ".png":
        raise InputError(f"--picture {path}: the name must end in .png")
    check_file("--picture", path)


def find_journal(source: str) -> Path:
    """Return the journal of a run's directory, of a shipped policy, or the file itself.

    A directory that is called like a shipped policy is named by its path, ./core say.
    """
    path = _shipped_run(source) if source in model_names() else Path(source)
    if path.is_dir():
        return journal_of(path)
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        known = [*(str(path.parent / p.name) for p in beside), *model_names()]
        close = get_close_matches(source, known, n=1)
        guess = f": did you mean {close[0]}?" if close else ""
        raise InputError(f"there is no run {source}{guess}")
    return path


def find_journals(sources: Sequence[str]) -> list[Path]:
    """Return the journals of several runs: at least one, and each of them once."""
    if not sources:
        raise InputError(
            "name at least one run: a directory, a journal or a shipped policy"
        )
    journals = [find_journal(source) for source in sources]
    seen: set[Path] = set()
    for source, journal in zip(sources, journals, strict=True):
        if journal.resolve() in seen:
            raise InputError(f"{source} is named twice: it would count double")
        seen.add(journal.resolve())
    return journals


def spell_run(path: Path) -> str:
    """Write the path of a run so that no shipped policy is meant by it."""
    return f"./{path}" if str(path) in model_names() else str(path)


def _shipped_run(name: str) -> Path:
    """Return the directory of the run behind a shipped policy, where it is kept."""
    kept = [n for n in model_names() if (model_path(n) / RUN).is_dir()]
    if name not in kept:
        raise InputError(
            f"'{name}' comes without the run that made it; those with one: "
            f"{', '.join(kept)}"
        )
    return model_path(name) / RUN


def newest_journal() -> Path:
    """Return the journal of the run under logs/ that was last written to."""
    newest = max(journals_under(LOGS), key=last_written, default=None)
    if newest is None:
        raise InputError(
            f"there is no run under {LOGS}/: name one, the directory of a training "
            "run or rehearsal"
        )
    return newest


class Terminal(Console):
    """A console that leaves a reader who stops reading to `main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print_table(self, table: Table) -> None:
        print_table(self, table)


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()


def refuse_changes(
    given: Any, default: Any, recorded: Any, allowed: Sequence[str] = ()
) -> None:
    """Refuse settings that differ from a resumed run's, unless they are just defaults.

    Args:
        given: The settings as parsed.
        default: What they are where a flag is left out.
        recorded: What the run was started with.
        allowed: Settings that may change.
    """
    was, usual = _flat(encode(recorded)), _flat(encode(default))
    changed = [
        f"--{key.replace('_', '-')} (is {was.get(key)})"
        for key, value in _flat(encode(given)).items()
        if value not in (usual.get(key), was.get(key)) and key not in allowed
    ]
    if changed:
        raise InputError(
            f"a resumed run keeps its settings; leave out {', '.join(changed)}"
        )


def _flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in data.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat
