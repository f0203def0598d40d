"""Find a run by what people call it: its directory, its journal, or a shipped name.

Runs that come with the package are passed in as `shipped`, their directories by name.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path

from horizon_rl.runs.paths import has_policy, journal_of, journals_under, last_written
from horizon_rl.support.errors import InputError

LOGS = Path("logs")
RUNS = LOGS / "train"
LAST = "last"


def new_run_path(folder: Path, label: str = "") -> Path:
    """Name a directory for a run by date and time; never one that exists."""
    stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (label and f"_{label}")
    names = (stamp if i == 1 else f"{stamp}-{i}" for i in count(1))
    return next(path for name in names if not (path := folder / name).exists())


def newest_journal() -> Path:
    """Return the journal of the run under logs/ that was last written to."""
    newest = max(journals_under(LOGS), key=last_written, default=None)
    if newest is None:
        raise InputError(
            f"there is no run under {LOGS}/: name one, the directory of a training "
            "run or rehearsal"
        )
    return newest


def trained_runs(folder: Path = LOGS, limit: int = 50) -> list[Path]:
    """Return the runs below a folder that hold a policy, the last written to first."""
    journals = sorted(journals_under(folder), key=last_written, reverse=True)
    runs = (journal.parent for journal in journals)
    return list(islice(filter(has_policy, runs), limit))


def spell_out(source: str, shipped: Collection[str]) -> str:
    """Return the path of a run that is named as `horizon runs` does, or is the `last`.

    Other names stay as they are; a directory that is called last is ./last.
    """
    if source == LAST:
        if not (runs := journals_under(RUNS, "*")):
            raise InputError(f"{LAST}: there is no run in {RUNS}")
        return str(max(runs, key=lambda run: (last_written(run), run)).parent)
    if source in shipped or source.startswith(".") or Path(source).exists():
        return source
    named = (LOGS / source, RUNS / source)
    return next((str(path) for path in named if path.is_dir()), source)


def find_journal(source: str, shipped: Mapping[str, Path]) -> Path:
    """Return the journal of a run's directory, of a shipped run, or the file itself.

    A directory that is called like a shipped run is named by its path, ./core say.
    """
    path = shipped.get(source) or Path(spell_out(source, shipped))
    if source in shipped and not path.is_dir():
        kept = [name for name, run in shipped.items() if run.is_dir()]
        raise InputError(
            f"'{source}' comes without the run that made it; those with one: "
            f"{', '.join(kept)}"
        )
    if path.is_dir():
        return journal_of(path)
    if not path.exists():
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        known = [*(str(path.parent / p.name) for p in beside), *shipped, LAST]
        close = get_close_matches(source, known, n=1)
        guess = f": did you mean {close[0]}?" if close else ""
        raise InputError(f"there is no run {source}{guess}")
    return path


def find_journals(sources: Sequence[str], shipped: Mapping[str, Path]) -> list[Path]:
    """Return the journals of several runs: at least one, and each of them once."""
    if not sources:
        raise InputError(
            "name at least one run: a directory, a journal or a shipped policy"
        )
    journals = [find_journal(source, shipped) for source in sources]
    resolved = [journal.resolve() for journal in journals]
    for number, source in enumerate(sources):
        if resolved[number] in resolved[:number]:
            raise InputError(f"{source} is named twice: it would count double")
    return journals


def spell_run(path: Path, shipped: Collection[str]) -> str:
    """Write the path of a run so that no shipped run is meant by it."""
    return f"./{path}" if str(path) in shipped else str(path)
