"""Turn a checkpoint into a shipped policy: weights without the optimiser, a record.

python -m horizon_rl.models.pack CHECKPOINT NAME --about ... --results FILE ...
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from horizon_rl.learning.checkpoint import load_checkpoint, save_checkpoint
from horizon_rl.models import RECORD, ModelRecord
from horizon_rl.records import dumps, encode


def pack_model(checkpoint: Path, folder: Path, record: ModelRecord) -> None:
    """Write what is needed to run a policy, or to train on from it."""
    found = load_checkpoint(checkpoint)
    kept = {k: t for k, t in found.tensors.items() if not k.startswith("adam.")}
    save_checkpoint(folder, kept, replace(found.record, weights_sha256=""))
    (folder / RECORD).write_text(dumps(encode(record)) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("name")
    for text in ("about", "command", "commit", "hardware"):
        parser.add_argument(f"--{text}", required=True)
    parser.add_argument("--results", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    counters = load_checkpoint(args.checkpoint).record
    results = []
    for file in args.results:
        found = json.loads(file.read_text())
        results += found if isinstance(found, list) else [found]
    config, counted = counters.config, counters.counters
    steps = config["num_envs"] * config["learner"]["ppo"]["num_steps"]
    record = ModelRecord(
        about=args.about,
        command=args.command,
        commit=args.commit,
        hardware=args.hardware,
        # Checkpoints that do not say it were made by a process alone.
        env_steps=counted["iteration"] * steps * counted.get("ranks", 1),
        minutes=round(counters.numbers["trained_s"] / 60.0, 2),
        seed=counters.seed,
        results=tuple(results),
    )
    pack_model(args.checkpoint, Path(__file__).parent / args.name, record)


if __name__ == "__main__":
    main()
