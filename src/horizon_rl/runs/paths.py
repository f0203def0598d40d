"""Names of what lies in a run's directory; docs/training.md says what each is."""

JOURNAL = "journal.jsonl"
CHECKPOINTS = "checkpoints"
INITIAL = "initial"
"""The checkpoint from before the first phase."""
EVIDENCE = "evidence"
METRICS = "metrics.jsonl"
TIMES = "times.jsonl"
BUDGET = "budget.json"
"""The budget that a resumed run was given; without it, that of its start holds."""


def phase_name(phase: int) -> str:
    """Name a phase's checkpoint, and its file of evidence."""
    return f"phase-{phase:05d}"
