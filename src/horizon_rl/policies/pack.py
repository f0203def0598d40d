"""Turn a checkpoint into a shipped policy: weights without the optimiser, a record.

python -m horizon_rl.policies.pack CHECKPOINT NAME --about ... --results FILE ...

Of a run's checkpoint the run's journal and the episodes behind its verdicts come along:
`horizon study` can compute every verdict again.
"""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from horizon_rl.learning.checkpoint import load_checkpoint, save_checkpoint
from horizon_rl.policies.shipped import RECORD, RUN, ModelRecord
from horizon_rl.runs.journal import replay
from horizon_rl.runs.paths import BUDGET, CHECKPOINTS, EVIDENCE, JOURNAL, TIMES
from horizon_rl.support.durable import read_lines
from horizon_rl.support.records import dumps, encode


def pack_model(checkpoint: Path, folder: Path, record: ModelRecord) -> None:
    """Write what is needed to run a policy, or to train on from it."""
    found = load_checkpoint(checkpoint)
    kept = {k: t for k, t in found.tensors.items() if not k.startswith("adam.")}
    save_checkpoint(folder, kept, replace(found.record, weights_sha256=""))
    (folder / RECORD).write_text(dumps(encode(record)) + "\n", "utf-8")
    if run := find_run(checkpoint):
        (folder / RUN).mkdir()
        for name in (JOURNAL, TIMES, BUDGET):
            if (run / name).exists():  # A budget that was never changed has no file.
                shutil.copy(run / name, folder / RUN / name)
        shutil.copytree(run / EVIDENCE, folder / RUN / EVIDENCE)


def find_run(checkpoint: Path) -> Path | None:
    """Return the directory of the run that a checkpoint lies in, if it does."""
    run = checkpoint.resolve().parent.parent
    inside = checkpoint.resolve().parent.name == CHECKPOINTS
    return run if inside and (run / JOURNAL).exists() else None


def describe(checkpoint: Path, told: dict[str, Any]) -> ModelRecord:
    """Put together what a checkpoint and its run say of its making, and what is told."""
    record, run = load_checkpoint(checkpoint).record, find_run(checkpoint)
    steps, seconds = record.counters["env_steps"], 0.0
    if run:
        # All of the run, also what was rolled back after the checkpoint.
        steps = replay(run / JOURNAL).state.env_steps
        parts = ("train_s", "probe_s", "settle_s")
        seconds = sum(line[part] for line in read_lines(run / TIMES) for part in parts)
    return ModelRecord(
        env_steps=steps,
        minutes=round(seconds / 60.0, 2),
        seed=record.seed,
        **told,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("name")
    texts = ("about", "command", "commit", "hardware")
    for text in texts:
        parser.add_argument(f"--{text}", required=True)
    parser.add_argument("--start", default="")
    parser.add_argument("--results", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    results = []
    for file in args.results:
        found = json.loads(file.read_text())
        results += found if isinstance(found, list) else [found]
    told = {text: getattr(args, text) for text in (*texts, "start")}
    told["results"] = tuple(results)
    record = describe(args.checkpoint, told)
    pack_model(args.checkpoint, Path(__file__).parent / "models" / args.name, record)


if __name__ == "__main__":
    main()
