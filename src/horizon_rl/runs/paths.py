"""What lies in a run's directory; no other room knows these names.

budget.json                 the budget, if it was changed on resuming
journal.jsonl               settings, then one line per judged phase: the run's memory
checkpoints/initial/        everything that learns, before the first phase
checkpoints/phase-00012/    the same after that phase, if it was kept
evidence/phase-00012.npz    the episodes that the phase was judged by
metrics.jsonl               one line per iteration
times.jsonl                 one line per phase: where its seconds went
results.json                the run's start and end in a suite, measured at its end
films/phase-00012.gif       the policy after that commit, if films were asked for
events.out.tfevents...      metrics and verdicts for TensorBoard

The journal depends only on the settings, so that a run which was killed and resumed has
the same as one that was not. Clock times are kept apart from it.
"""

from pathlib import Path

from horizon_rl.support.errors import InputError

JOURNAL = "journal.jsonl"
CHECKPOINTS = "checkpoints"
INITIAL = "initial"
"""The checkpoint from before the first phase."""
EVIDENCE = "evidence"
METRICS = "metrics.jsonl"
TIMES = "times.jsonl"
BUDGET = "budget.json"
"""The budget that a resumed run was given; without it, that of its start holds."""
RESULTS = "results.json"
FILMS = "films"


def phase_name(phase: int) -> str:
    """Name a phase's checkpoint, and its file of evidence."""
    return f"phase-{phase:05d}"


def journal_of(run: Path) -> Path:
    """Return the journal of the run in a directory; one without is refused."""
    if not (run / JOURNAL).exists():
        raise InputError(f"{run} holds no run: there is no {JOURNAL} in it")
    return run / JOURNAL


def has_run(folder: Path) -> bool:
    """Tell whether a directory holds a run."""
    return (folder / JOURNAL).exists()


def has_policy(run: Path) -> bool:
    """Tell whether a run keeps checkpoints: a rehearsal keeps none."""
    return (run / CHECKPOINTS / INITIAL).is_dir()


def journals_under(folder: Path, depth: str = "**") -> list[Path]:
    """Return the journals of all runs below a folder."""
    return sorted(folder.glob(f"{depth}/{JOURNAL}"))


def last_written(journal: Path) -> float:
    """Return when the run of a journal last wrote a line."""
    files = (journal, metrics_file(journal))
    return max((f.stat().st_mtime for f in files if f.exists()), default=0.0)


def metrics_file(journal: Path) -> Path:
    """Return the file that changes with every iteration."""
    return journal.with_name(METRICS)


def checkpoint_folder(run: Path, name: str = INITIAL) -> Path:
    """Return where a checkpoint of that name lies."""
    return run / CHECKPOINTS / name


def film_file(run: Path, phase: int) -> Path:
    """Return where the film of a phase's commit lies."""
    return run / FILMS / f"{phase_name(phase)}.gif"


def film_files(run: Path) -> list[Path]:
    """Return the films of a run, by phase."""
    return sorted((run / FILMS).glob("phase-*.gif"))


def run_of(checkpoint: Path) -> Path | None:
    """Return the directory of the run that a checkpoint lies in, if it does."""
    parent = checkpoint.resolve().parent
    run = parent.parent
    return run if parent.name == CHECKPOINTS and (run / JOURNAL).exists() else None
