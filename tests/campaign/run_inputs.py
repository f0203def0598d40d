"""Files of a run, and a copy of its last checkpoint, to be attacked."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.campaign.mutations import (
    forge_arrays,
    forge_json,
    forge_line,
    mutate_bytes,
    mutate_text,
)
from tests.campaign.readers import Kind, read_each, run_command, run_sound

from horizon_rl.evaluation.studies.recheck import recheck
from horizon_rl.policies.load import load_policy
from horizon_rl.runs.checkpoints import verify_checkpoint
from horizon_rl.runs.journal import recorded_checkpoints
from horizon_rl.runs.paths import BUDGET, EVIDENCE, JOURNAL, METRICS, RESULTS, TIMES
from horizon_rl.runs.read import read_run
from horizon_rl.runs.results import BeforeAfter, write_results
from horizon_rl.runs.verify import verify_run
from horizon_rl.support.durable import SUMS
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import encode
from horizon_rl.training.context import read_context


def make_run(run: Path, evaluation: Path) -> Path:
    """Train a run of two phases with every file that one can have; return its end.

    What it came to is taken from somebody's evaluation.
    """
    run_sound("train", "--preset", "smoke", "--run", run, "--table", 0, "--steps", 3000)
    run_sound("train", "--resume", run, "--steps", 3001, "--table", 0)
    last = sorted((run / "checkpoints").iterdir())[-1]
    record = json.loads(evaluation.read_text())
    found = BeforeAfter(
        checkpoint=last.name, env_steps=3000, before=record, after=record
    )
    write_results(run, found)
    return last


def make_run_kinds(folder: Path, evaluation: Path) -> dict[str, Kind]:
    """Make a run, and a copy of its last checkpoint that no journal vouches for."""
    run = folder / "run"
    last = make_run(run, evaluation)
    journal, phase = run / JOURNAL, run / EVIDENCE / "phase-00000.npz"
    copy = shutil.copytree(last, folder / "copy")
    bare = shutil.copytree(last, folder / "bare")
    (bare / SUMS).unlink()

    def summary() -> Any:
        found = encode(read_run(journal, evidence=False).summary)
        return {k: v for k, v in found.items() if k != "age_s"}

    def telemetry() -> Any:
        found = read_run(journal)
        return [summary(), *map(dict, found.metrics)]

    def status() -> None:
        run_command("status", run)  # It says how long ago, every time something else.

    def study() -> Any:
        numbers = folder / "study.json"
        said = run_command("study", run, "--json", numbers)
        return said, numbers.read_text()

    def names() -> Any:
        # What `horizon eval RUN/checkpoints/NAME` does first.
        return recorded_checkpoints(journal), verify_checkpoint(last)

    def resumed() -> Any:
        return encode(read_context(run))  # What `horizon train --resume` does first.

    def boards() -> Any:
        return read_each(telemetry, status, study)

    def all_commands() -> Any:
        return read_each(telemetry, status, study, names, resumed)

    def evidence() -> Any:
        found, findings = verify_run(journal)
        wrong = recheck(found).disagreements
        said = [problem for finding in findings for problem in finding.problems]
        if said or wrong:
            raise InputError(f"{said} {wrong}")
        return {k: v.tolist() for k, v in found.evidence[0].items()}

    def episodes() -> Any:
        # Means that stay the same pass.
        return read_each(evidence, study)

    def policy() -> Any:
        return load_policy(str(last)).digest

    def copied() -> Any:
        return verify_checkpoint(copy), load_policy(str(copy)).digest

    def unwitnessed() -> Any:
        return load_policy(str(bare)).digest

    sealed = {
        "journal": Kind(journal, summary, mutate_text, True, 8),
        "metrics": Kind(run / METRICS, telemetry, mutate_text, True, 24),
        "times": Kind(run / TIMES, telemetry, mutate_text, True, 24),
        "budget": Kind(run / BUDGET, telemetry, mutate_text, True, 24),
        "results of a run": Kind(run / RESULTS, telemetry, mutate_text, True, 24),
        "evidence": Kind(phase, evidence, mutate_bytes, True, 30),
        "checkpoint.json": Kind(
            last / "checkpoint.json", policy, mutate_text, True, 10
        ),
        "weights": Kind(last / "weights.safetensors", policy, mutate_bytes, True, 10),
        "checkpoint.json, copied": Kind(
            copy / "checkpoint.json", copied, mutate_text, True, 12
        ),
        "SHA256SUMS, copied": Kind(copy / SUMS, copied, mutate_text, True, 12),
    }
    forged = {
        "journal": Kind(journal, all_commands, forge_line, False, 100),
        "metrics": Kind(run / METRICS, boards, forge_line, False, 90),
        "times": Kind(run / TIMES, boards, forge_line, False, 90),
        "budget": Kind(run / BUDGET, boards, forge_line, False, 90),
        "results of a run": Kind(run / RESULTS, boards, forge_line, False, 90),
        "evidence": Kind(phase, episodes, forge_arrays, False, 100),
        "checkpoint.json": Kind(
            bare / "checkpoint.json", unwitnessed, forge_json, False, 10
        ),
    }
    return sealed | {f"{name}, forged": kind for name, kind in forged.items()}
