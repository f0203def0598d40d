"""`horizon study`, as a user runs it, on runs written by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from horizon_rl.cli import main
from horizon_rl.curriculum import Evidence, choose_method
from horizon_rl.curriculum.config import CurriculumCfg
from horizon_rl.domains import paper_catalogue
from horizon_rl.rehearsal import Rehearsal, RehearsalCfg
from horizon_rl.runs.journal import create_curriculum
from horizon_rl.runs.lines import to_line
from horizon_rl.support.records import encode

N, LONGEST = 32, 100
TRAIN = {
    **{"num_envs": 4, "steps": 0, "minutes": 0.0, "task": {"episode_s": 2.0}},
    "learner": {"ppo": {"num_steps": 50}},
}
LENGTHS = (95, 90, 95, 40, 95)


def write_run(run: Path, method="paper", seed=0, lengths=LENGTHS) -> Path:
    """Write the files of a run whose phases had these mean episode lengths."""
    (run / "evidence").mkdir(parents=True)
    context = {
        "train": {**TRAIN, "method": method, "seed": seed},
        "catalogue": encode(paper_catalogue()),
        "ranks": 1,
    }
    chosen = choose_method(method, CurriculumCfg())
    journal = run / "journal.jsonl"
    curriculum = create_curriculum(journal, ["mass", "com"], chosen, context)
    around = np.linspace(-0.1, 0.1, N, dtype=np.float32)
    for phase, length in enumerate(lengths):
        arrays = {
            "window_start": np.zeros(N, np.int32),
            "window_length": np.full(N, length, np.int32),
            "window_error": 0.25 + around,
        }
        for probe in ("checkpoint", "candidate", "anchor")[phase == 0 :]:
            arrays |= {f"{probe}_length": arrays["window_length"]}
            arrays |= {f"{probe}_error": 0.25 + around, f"{probe}_return": 9.0 + around}
        np.savez(run / "evidence" / f"phase-{phase:05d}.npz", **arrays)
        error, value = (float(np.mean(x + around, dtype=float)) for x in (0.25, 9.0))
        probes: dict[str, Any] = {"candidate_error": error, "candidate_return": value}
        probes |= {"anchor_error": error, "anchor_return": value}
        if phase:
            probes |= {"checkpoint_error": error, "checkpoint_return": value}
            probes |= {"reference_error": error, "reference_return": value}
        evidence = Evidence(
            length=length / LONGEST,
            tracking_error=error,
            **probes,
            episodes=N,
            iterations=3,
            env_steps=1000,
        )
        curriculum.tell(evidence)
    curriculum.close()
    steps = range(200, 200 * 3 * len(lengths) + 1, 200)
    metrics = [
        {"phase": i // 3, "env_steps": x, "episode_length": 0.9}
        for i, x in enumerate(steps)
    ]
    times = [
        {"phase": k, "train_s": 6.0, "probe_s": 3.0, "settle_s": 1.0}
        for k in range(len(lengths))
    ]
    for name, lines in (("metrics", metrics), ("times", times)):
        (run / f"{name}.jsonl").write_bytes(b"".join(map(to_line, lines)))
    return run


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    return [
        write_run(tmp_path / "h0"),
        write_run(tmp_path / "h1", seed=1, lengths=(*LENGTHS, 95, 95)),
        write_run(tmp_path / "w0", "wide"),
    ]


def study(capsys, *args, code=0) -> str:
    assert main(["study", *map(str, args)]) == code
    out, err = capsys.readouterr()
    assert (err == "") == (code == 0)
    return out + err


def bad(capsys, *args) -> str:
    """Run a command that must be refused; return its one line of complaint."""
    assert main(["study", *map(str, args)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("horizon: ")
    return err


def write_results(file: Path, *pairs: tuple[str, float]) -> Path:
    suite = {"name": "ood", "hash": "a", "severity": 0.5}
    rows = [
        {"policy": p, "suite": suite, "columns": {"all": {"success": s}}}
        for p, s in pairs
    ]
    file.write_text(json.dumps(rows))
    return file


def test_tables_fit_80_columns_and_hold_every_method(runs, capsys):
    out = study(capsys, *runs)
    assert "Not at their end yet: paper seed 0, paper seed 1, wide seed 0." in out
    assert "…" not in out and max(map(len, out.splitlines())) <= 80
    for title in (
        "Results of the runs",
        "time went",
        "Coverage",
        "computed again",
        "diagnostic",
    ):
        assert title in out
    shown = next(x for x in out.splitlines() if x.startswith("paper"))
    assert shown.split(maxsplit=2)[:2] == ["paper", "2"]
    assert "6.0 ± 1.4" in shown
    assert "By the clock, so given and not mastered: wide." in out


def test_markdown_holds_the_same_tables(runs, capsys):
    out = study(capsys, *runs, "--markdown")
    assert (
        "| method | seeds | phases | commits | rollbacks | holds | env steps, M |"
        in out
    )
    assert "| paper | 2 | 6.0 ± 1.4 |" in out
    assert out.count("\n|---|") == 8


def test_json_holds_runs_and_methods(runs, capsys, tmp_path):
    study(capsys, *runs, "--json", tmp_path / "study.json")
    data = json.loads((tmp_path / "study.json").read_text())
    assert [run["label"] for run in data["runs"]] == [
        *("paper seed 0", "paper seed 1", "wide seed 0")
    ]
    run = data["runs"][0]
    assert run["recheck"]["agreed"] == run["recheck"]["checked"] == 5
    assert run["gate_stability"]["paired"] == 0.0
    assert run["costs"]["probe_share"] == 0.4
    assert data["methods"][0]["costs"]["phases"]["mean"] == 6.0


def test_names_group_runs_into_methods(runs, capsys):
    out = study(capsys, f"mine={runs[0]}", f"mine={runs[1]}", "--markdown")
    assert "| mine | 2 |" in out and "| paper |" not in out


def test_directory_called_like_a_shipped_policy_goes_by_its_path(
    runs, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    runs[0].rename("core-mlp")
    assert "| paper | 1 | 5 |" in study(capsys, "./core-mlp", "--markdown")
    assert "| core-mlp | 1 |" in study(capsys, "core-mlp", "--markdown")


def test_tampered_evidence_is_reported_and_fails(runs, capsys):
    file = runs[0] / "evidence" / "phase-00003.npz"
    with np.load(file) as arrays:
        altered = dict(arrays)
    altered["window_length"][:] = 95
    np.savez(file, **altered)
    out = study(capsys, *runs, code=1)
    assert f"{runs[0]}, phase 3: length is 0.4, its episodes say 0.95" in out
    assert (
        "gate L failed, recomputed passed; decision rollback, recomputed commit" in out
    )
    assert "horizon: 1 phase(s) on record do not follow" in out


def test_damaged_evidence_is_reported_and_fails(runs, capsys):
    (runs[0] / "evidence" / "phase-00004.npz").write_bytes(b"PK\x03\x04 no more")
    out = study(capsys, *runs, code=1)
    assert f"{runs[0]}, phase 4: evidence/phase-00004.npz cannot be read" in out


def test_run_without_evidence_says_so(runs, capsys, tmp_path):
    rehearsal = Rehearsal.create(
        RehearsalCfg(seed=4), paper_catalogue(), tmp_path / "rehearsed"
    )
    list(rehearsal.phases())
    rehearsal.close()
    out = study(capsys, runs[0], f"rehearsed={tmp_path / 'rehearsed'}")
    assert "rehearsed: no evidence files, nothing to check." in out


def test_results_stand_beside_the_signal(runs, capsys, tmp_path):
    both = write_results(tmp_path / "h.json", ("paper", 0.31), ("paper", 0.42))
    wide = write_results(tmp_path / "w.json", ("some-file.onnx", 0.123))
    out = study(capsys, *runs, "--results", both, f"wide={wide}", "--markdown")
    rows = [line for line in out.splitlines() if line.startswith("| paper seed 1")]
    assert rows[-1].endswith("| 42.0% |")
    assert "| 12.3% |" in out


def test_figures_are_drawn(runs, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        {"method": m, "seed": s, "env_steps": x, "success": x / 10000}
        for m in ("paper", "else")
        for s in (0, 1)
        for x in (1000, 2000)
    ]
    (tmp_path / "curve.json").write_text(json.dumps(rows))
    results = write_results(tmp_path / "w.json", ("wide", 0.1))
    args = ("--cost-curve", tmp_path / "curve.json", "--results", results)
    out = study(capsys, *runs, *args, "--figures", tmp_path / "figures")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    stems = {"coverage", "cost-curve", "plateau", "frontiers-paper-seed-0"}
    stems |= {"frontiers-paper-seed-1", "frontiers-wide-seed-0"}
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    assert out.count("drawn in") == len(stems)
    assert "Success at equal cost" in out


def test_one_seed_twice_is_a_warning(runs, capsys, tmp_path):
    again = write_run(tmp_path / "again")
    assert main(["study", str(runs[0]), str(again), "--markdown"]) == 0
    out, err = capsys.readouterr()
    assert "have the same seed" in err
    assert f"paper seed 0, {again}" in out


def test_bad_input_is_one_line(runs, capsys, tmp_path):
    assert "name at least one run" in bad(capsys)
    assert "there is no run" in bad(capsys, tmp_path / "nowhere")
    assert "is named twice" in bad(capsys, runs[0], f"x={runs[0]}")
    missing = tmp_path / "none.json"
    assert "cannot read" in bad(capsys, runs[0], "--results", missing)
    assert "cannot read" in bad(capsys, runs[0], "--cost-curve", missing)
    assert "unknown name 'wid'" in bad(capsys, runs[2], "--results", f"wid={missing}")
    missing.write_text("{")
    assert "not JSON" in bad(capsys, runs[0], "--results", missing)
    assert "a file, not a folder" in bad(capsys, runs[0], "--figures", missing)
    assert "no folder" in bad(capsys, runs[0], "--json", tmp_path / "no" / "x.json")


def test_shipped_runs_go_by_their_names_and_not_as_seeds_of_one_method(capsys):
    assert main(["study", "core", "full", "--markdown"]) == 0
    out, said = capsys.readouterr()
    assert "| core | 1 |" in out and "| full | 1 |" in out
    assert "not two seeds" not in said
    assert main(["study", "mine=core", "--markdown"]) == 0
    assert "| mine | 1 |" in capsys.readouterr().out
