"""A run on disk: settings, checkpoints at the ends of segments, metrics.

config.json                 the settings, resolved
checkpoints/segment-00012/  everything that learns, after that segment
metrics.jsonl               one line per iteration
events.out.tfevents...      the same for TensorBoard

Of several ranks, rank 0 alone reads and writes it.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

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
from horizon_rl.ranks import ALONE, Ranks
from horizon_rl.records import decode, dumps, encode
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.trainer import Iteration, Trainer

CONFIG = "config.json"
METRICS = "metrics.jsonl"
KEPT = 3
"""Checkpoints to keep: the newest."""


class Settings(NamedTuple):
    """What a run was started with."""

    cfg: TrainCfg
    catalogue: Catalogue
    num_ranks: int


class Run:
    """A trainer and the directory its results go to."""

    def __init__(self, trainer: Trainer, path: Path):
        self.trainer, self.path, self.ranks = trainer, path, trainer.ranks
        self.trained_s = 0.0
        """Seconds of training, earlier sittings included."""
        self.stopped = False
        """Whether it ended because it was asked to."""

    @classmethod
    def create(
        cls,
        cfg: TrainCfg,
        catalogue: Catalogue,
        path: Path,
        device: str = "auto",
        ranks: Ranks = ALONE,
        init: Path | None = None,
    ) -> "Run":
        """Start a run, perhaps from the weights of the checkpoint `init`.

        A directory that holds one already is refused.
        """
        run = cls(Trainer(cfg, catalogue, device=device, ranks=ranks), path)
        ranks.once(lambda: run._make_directory(init))
        return run

    @classmethod
    def resume(
        cls,
        path: Path,
        *,
        steps: int | None = None,
        minutes: float | None = None,
        device: str = "auto",
        ranks: Ranks = ALONE,
    ) -> "Run":
        """Go on after the last segment that was finished, perhaps with a new budget.

        The device may be another: it is not part of what a run is. Only on the same CPU
        does the run go on as if it had not been interrupted, to the bit. The number of
        ranks must be the same: it says how many worlds there are.
        """
        cfg, catalogue, num_ranks = ranks.once(lambda: read_settings(path))
        if num_ranks != ranks.size:
            raise InputError(
                f"{path} is a run of {num_ranks} rank(s), not {ranks.size}: resume it "
                f"with {start_command(num_ranks)}, or start another from its checkpoint "
                "with --init"
            )
        cfg = replace(
            cfg,
            steps=cfg.steps if steps is None else steps,
            minutes=cfg.minutes if minutes is None else minutes,
        )
        run = cls(Trainer(cfg, catalogue, device=device, ranks=ranks), path)
        ranks.once(run._catch_up)
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

    def iterations(
        self, stop_asked: Callable[[], bool] = lambda: False
    ) -> Iterator[Iteration]:
        """Train until the budget is spent; saves at the end of every segment.

        Where `stop_asked` says so after an iteration, the segment ends with it: what it
        learnt is kept, as a boundary.
        """
        trainer, ranks = self.trainer, self.ranks
        self._follow_rank_0()
        log = self.path / METRICS if ranks.leads else os.devnull
        with open(log, "a") as metrics:
            while not (self.stopped or ranks.once(lambda: self.budget_spent)):
                began = time.perf_counter()
                for iteration in trainer.run_segment():
                    metrics.write(dumps(asdict(iteration)) + "\n")
                    metrics.flush()
                    yield iteration
                    self.stopped = ranks.once(stop_asked)
                    if self.stopped:
                        trainer.segment += 1
                        break
                self.trained_s += time.perf_counter() - began
                self._check_ranks()
                ranks.once(self.save)

    def start_from(self, path: Path) -> CheckpointRecord:
        """Take over what a checkpoint has learnt; its counters are in the record."""
        checkpoint = load_checkpoint(path)
        try:
            load_state_tensors(self.trainer.learner, checkpoint.tensors)
        except InputError as error:
            raise InputError(f"{path} is of another policy: {error}") from error
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
            counters={
                "iteration": trainer.iteration,
                "segment": trainer.segment,
                "env_steps": trainer.env_steps,
                "ranks": self.ranks.size,
            },
            seed=trainer.cfg.seed,
            config=encode(trainer.cfg),
            catalogue=encode(trainer.catalogue),
            levels=trainer.catalogue.parse_levels(trainer.cfg.levels),
        )

    def _make_directory(self, init: Path | None) -> None:
        if init:
            self.start_from(init)  # It may not fit: then nothing has been written.
        make_run_directory(self.path, CONFIG)
        if init:
            self.save()  # Before the settings: no run exists that lacks it.
        settings = {
            "train": encode(self.trainer.cfg),
            "catalogue": encode(self.trainer.catalogue),
            "ranks": self.ranks.size,
        }
        write_file(self.path / CONFIG, dumps(settings).encode())

    def _catch_up(self) -> None:
        """Take over what the run has learnt and counted so far."""
        if newest := newest_checkpoint(self.path):
            record = self.start_from(newest)
            self.trainer.learner.learning_rate = record.numbers["learning_rate"]
            self.trainer.iteration = record.counters["iteration"]
            self.trainer.segment = record.counters["segment"]
            self.trained_s = record.numbers["trained_s"]
        self._trim_metrics()

    def _follow_rank_0(self) -> None:
        """Let all ranks start from what rank 0 has learnt and counted."""
        trainer, learner = self.trainer, self.trainer.learner
        trainer.iteration, trainer.segment, learner.learning_rate = self.ranks.once(
            lambda: (trainer.iteration, trainer.segment, learner.learning_rate)
        )
        self.ranks.share(state_tensors(learner).values())

    def _check_ranks(self) -> None:
        """Refuse to go on where ranks have learnt different things."""
        learner = self.trainer.learner
        rate = torch.tensor(learner.learning_rate, dtype=torch.float64)
        self.ranks.check_same({**state_tensors(learner), "learning_rate": rate})

    def _trim_metrics(self) -> None:
        """Drop the lines of iterations that will run again."""
        file = self.path / METRICS
        if not file.exists():
            return
        done = self.trainer.iteration
        kept = [line for line in _whole_lines(file) if line["number"] <= done]
        write_file(file, "".join(dumps(line) + "\n" for line in kept).encode())


def start_command(num_ranks: int) -> str:
    """Return the words that start the command line with so many ranks."""
    if num_ranks == 1:
        return "horizon"
    return f"torchrun --nproc-per-node {num_ranks} -m horizon_rl"


def read_settings(path: Path) -> Settings:
    """Read what the run in `path` was started with."""
    file = path / CONFIG
    try:
        data = json.loads(file.read_text())
        cfg, catalogue = data["train"], data["catalogue"]
        num_ranks = data.get("ranks", 1)
        return Settings(decode(TrainCfg, cfg), decode(Catalogue, catalogue), num_ranks)
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
