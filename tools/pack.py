"""Turn a checkpoint into a shipped policy: weights without the optimiser, a record.

python tools/pack.py CHECKPOINT NAME --about ... --results FILE ...

Of a run's checkpoint the run's journal and the episodes behind its verdicts come along:
`horizon study` can compute every verdict again.
"""

import json
from pathlib import Path

import tyro

from horizon_rl.learning.checkpoint import fill_checkpoint
from horizon_rl.policies.learned import read_checkpoint
from horizon_rl.policies.shipped import MODELS, RECORD, RUN, ModelRecord
from horizon_rl.runs.directory import copy_record
from horizon_rl.runs.paths import journal_of, run_of
from horizon_rl.runs.read import read_run
from horizon_rl.support.durable import write_directory
from horizon_rl.support.records import dumps, encode


def pack_model(checkpoint: Path, folder: Path, record: ModelRecord) -> None:
    """Write what is needed to run a policy, or to train on from it."""
    found = read_checkpoint(checkpoint)
    kept = {k: t for k, t in found.tensors.items() if not k.startswith("adam.")}

    def fill(aside: Path) -> None:
        fill_checkpoint(aside, kept, found.record)
        (aside / RECORD).write_text(dumps(encode(record)) + "\n", "utf-8")

    write_directory(folder, fill)
    if run := run_of(checkpoint):
        copy_record(run, folder / RUN)


def main(
    checkpoint: Path,
    name: str,
    /,
    *,
    about: str,
    command: str,
    commit: str,
    hardware: str,
    start: str = "",
    results: tuple[Path, ...] = (),
) -> None:
    """Write a shipped policy; see `ModelRecord` for the fields."""
    record, run = read_checkpoint(checkpoint).record, run_of(checkpoint)
    steps, seconds = record.counters["env_steps"], 0.0
    if run:
        # All of the run, also what was rolled back after the checkpoint.
        files = read_run(journal_of(run), evidence=False)
        steps = files.journal.state.env_steps
        seconds = float(files.phase_times().sum())
    evaluations = []
    for file in results:
        found = json.loads(file.read_text())
        evaluations += found if isinstance(found, list) else [found]
    model = ModelRecord(
        about=about,
        command=command,
        commit=commit,
        hardware=hardware,
        env_steps=steps,
        minutes=round(seconds / 60.0, 2),
        seed=record.seed,
        start=start,
        results=tuple(evaluations),
    )
    pack_model(checkpoint, MODELS / name, model)


if __name__ == "__main__":
    tyro.cli(main)
