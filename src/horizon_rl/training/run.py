"""A run on disk: settings, checkpoints at the ends of segments, metrics.

config.json                 the settings, resolved
checkpoints/segment-00012/  everything that learns, after that segment
metrics.jsonl               one line per iteration
events.out.tfevents...      the same for TensorBoard
"""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from horizon_rl.domains import Catalogue
from horizon_rl.durable import make_run_directory, write_file
from horizon_rl.errors import InputError
from horizon_rl.learning import load_state_tensors, state_tensors
from horizon_rl.learning.checkpoint import (
    CHECKPOINTS,
    CheckpointRecord,
    list_checkpoints,
    load_checkpoint,
    newest_checkpoint,
    save_checkpoint,
)
from horizon_rl.records import decode, dumps, encode
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.trainer import Iteration, Trainer

CONFIG = "config.json"
METRICS = "metrics.jsonl"
KEPT = 3
"""Checkpoints to keep: the newest."""


class Run:
    """A trainer and the directory its results go to."""

    def __init__(self, trainer: Trainer, path: Path):
        self.trainer, self.path = trainer, path
        self.trained_s = 0.0
        """Seconds of training, earlier sittings included."""

    @classmethod
    def create(
        cls, cfg: TrainCfg, catalogue: Catalogue, path: Path, device: str = "auto"
    ) -> "Run":
        """Start a run; a directory that holds one already is refused."""
        run = cls(Trainer(cfg, catalogue, device=device), path)
        make_run_directory(path, CONFIG)
        settings = {"train": encode(cfg), "catalogue": encode(catalogue)}
        write_file(path / CONFIG, dumps(settings).encode())
        return run

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        steps: int | None = None,
        minutes: float | None = None,
        device: str = "auto",
    ) -> "Run":
        """Go on after the last segment that was finished, perhaps with a new budget.

        The device may be another: it is not part of what a run is. Only on the same CPU
        does the run go on as if it had not been interrupted, to the bit.
        """
        cfg, catalogue = read_settings(path)
        cfg = replace(
            cfg,
            steps=cfg.steps if steps is None else steps,
            minutes=cfg.minutes if minutes is None else minutes,
        )
        run = cls(Trainer(cfg, catalogue, device=device), path)
        if newest := newest_checkpoint(path):
            record = run.start_from(newest)
            run.trainer.iteration = record.counters["iteration"]
            run.trainer.segment = record.counters["segment"]
            run.trained_s = record.numbers["trained_s"]
        run._trim_metrics()
        return run

    @property
    def budget_spent(self) -> str | None:
        """Why the run is at its end, in words; None while it goes on."""
        cfg, steps = self.trainer.cfg, self.trainer.env_steps
        if 0 < cfg.steps <= steps:
            return f"budget of {cfg.steps} env steps spent"
        if 0.0 < cfg.minutes * 60.0 <= self.trained_s:
            return f"budget of {cfg.minutes:g} minutes spent"
        return None

    def iterations(self) -> Iterator[Iteration]:
        """Train until the budget is spent; saves at the end of every segment."""
        with open(self.path / METRICS, "a") as metrics:
            while not self.budget_spent:
                began = time.perf_counter()
                for iteration in self.trainer.run_segment():
                    metrics.write(dumps(asdict(iteration)) + "\n")
                    metrics.flush()
                    yield iteration
                self.trained_s += time.perf_counter() - began
                self.save()

    def start_from(self, path: Path) -> CheckpointRecord:
        """Take over what a checkpoint has learnt; its counters are in the record."""
        checkpoint = load_checkpoint(path)
        try:
            load_state_tensors(self.trainer.learner, checkpoint.tensors)
        except InputError as error:
            raise InputError(f"{path} is of another policy: {error}") from error
        rate = checkpoint.record.numbers["learning_rate"]
        self.trainer.learner.learning_rate = rate
        return checkpoint.record

    def save(self) -> Path:
        """Write what was learnt so far; what is older than `KEPT` goes."""
        trainer = self.trainer
        path = self.path / CHECKPOINTS / f"segment-{trainer.segment:05d}"
        save_checkpoint(path, state_tensors(trainer.learner), self._record())
        for old in list_checkpoints(self.path)[:-KEPT]:
            shutil.rmtree(old)
        return path

    def _record(self) -> CheckpointRecord:
        trainer = self.trainer
        return CheckpointRecord(
            numbers={
                "learning_rate": trainer.learner.learning_rate,
                "trained_s": self.trained_s,
            },
            counters={"iteration": trainer.iteration, "segment": trainer.segment},
            seed=trainer.cfg.seed,
            config=encode(trainer.cfg),
            catalogue=encode(trainer.catalogue),
            levels=trainer.catalogue.parse_levels(trainer.cfg.levels),
        )

    def _trim_metrics(self) -> None:
        """Drop the lines of iterations that will run again."""
        file = self.path / METRICS
        if not file.exists():
            return
        done = self.trainer.iteration
        kept = [line for line in _whole_lines(file) if line["number"] <= done]
        write_file(file, "".join(dumps(line) + "\n" for line in kept).encode())


def read_settings(path: Path) -> tuple[TrainCfg, Catalogue]:
    """Read what the run in `path` was started with."""
    file = path / CONFIG
    try:
        data = json.loads(file.read_text())
        return decode(TrainCfg, data["train"]), decode(Catalogue, data["catalogue"])
    except OSError as error:
        message = f"{path} holds no run to resume: cannot read {file}"
        raise InputError(message) from error
    except (ValueError, KeyError, TypeError, InputError) as error:
        raise InputError(f"{file} is damaged: {error}") from error


def _whole_lines(file: Path) -> list[dict[str, Any]]:
    lines = []
    for line in file.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break  # Torn by a kill: it and what follows will be written again.
    return lines
