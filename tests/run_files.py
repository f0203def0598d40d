"""The files of a small training run, as training writes them, without training."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from horizon_rl.cli import main
from horizon_rl.curriculum import CheckpointRef, Curriculum, Evidence, Paper
from horizon_rl.domains import paper_catalogue
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.runs.lines import to_line
from horizon_rl.support.records import encode

# An iteration is 4 x 5 x 2 = 40 steps.
TRAIN = {
    "method": "paper",
    "seed": 7,
    "num_envs": 4,
    "phase_iterations": 3,
    "steps": 0,
    "minutes": 0.0,
    "learner": {"ppo": {"num_steps": 5}},
}
CONTEXT = {
    "train": TRAIN,
    "catalogue": encode(paper_catalogue()),
    "ranks": 2,
    "initial": "0" * 64,
    "start": "from base-mlp",
}
GOOD = Evidence(
    length=0.95,
    tracking_error=0.2,
    checkpoint_error=0.2,
    checkpoint_return=20.0,
    reference_error=0.2,
    reference_return=20.0,
    anchor_error=0.15,
    anchor_return=11.0,
    iterations=3,
    env_steps=150,  # 30 of them in probes.
)
PHASES = (
    replace(GOOD, length=0.3),  # The baseline is held,
    GOOD,  # then committed;
    Evidence(  # mass rolls back,
        length=0.1, tracking_error=0.9, iterations=2, env_steps=80, aborted=True
    ),
    replace(GOOD, anchor_error=0.25, anchor_return=10.0),  # com is committed.
)


def begin(
    run: Path, phases: Sequence[Evidence] = PHASES, ranks: int = 2, **train
) -> Curriculum:
    """Write the files of a training run, with its journal left open."""
    run.mkdir(parents=True)
    context = {**CONTEXT, "ranks": ranks, "train": {**TRAIN, **train}}
    journal = run / "journal.jsonl"
    curriculum = create_curriculum(journal, ["mass", "com"], Paper(), context)

    for phase, evidence in enumerate(phases):
        kept = None
        if curriculum.decide(evidence).keeps_weights:
            kept = CheckpointRef(f"phase-{phase:05d}", "0" * 64)
            (run / "checkpoints" / kept.name).mkdir(parents=True)
        curriculum.tell(evidence, kept)
    return curriculum


def stop(run: Path, *args, **train) -> Path:
    """Write the files of a training run that no process holds."""
    begin(run, *args, **train).close()
    return run


def write_times(run: Path, num_phases: int = 4, seconds: float = 10.0) -> None:
    parts = {"train_s": 0.7 * seconds, "probe_s": 0.2 * seconds}
    parts["settle_s"] = 0.1 * seconds
    lines = [{"phase": phase, **parts} for phase in range(num_phases)]
    (run / "times.jsonl").write_bytes(b"".join(map(to_line, lines)))


def write_metrics(run: Path, phase: int = 4, count: int = 2, first: int = 12) -> None:
    """Add iterations of a phase; to a new file, those of the phases before it too."""
    file = run / "metrics.jsonl"
    begun = first if file.exists() else 1
    with open(file, "ab") as opened:
        for number in range(begun, first + count):
            line = {
                **{
                    "phase": phase if number >= first else 0,
                    "number": number,
                    "env_steps": 40 * number,
                },
                **{"collect_s": 0.3, "learn_s": 0.2, "reward": 0.04},
                **{"episode_length": 0.9, "tracking_error": 0.31},
                "figures": {"entropy": -2.2},
            }
            opened.write(to_line(line))


def status(capsys, *args) -> str:
    assert main(["status", *map(str, args)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def status_json(capsys, *args) -> dict:
    return json.loads(status(capsys, *args, "--json"))
