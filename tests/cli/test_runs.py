"""`horizon runs`, and the table that a run leaves, as a user sees them."""

import json
import re
from pathlib import Path

import pytest

from horizon_rl.cli import main
from horizon_rl.runs.results import BeforeAfter, read_results, write_results
from horizon_rl.runs.verify import verify_run
from run_files import status, status_json, stop

NAME = "2026-11-18_08-07-01_horizon-core"


def record(success: float, scenarios: str = "f00d") -> dict:
    columns = {"mass": {"success": success / 2.0, "episodes": 128}}
    columns["all"] = {"success": success, "episodes": 128, "hash": scenarios}
    suite = {"name": "ood", "draw": "dev", "hash": "beef" * 16, "severity": 0.5}
    return {"policy": "x", "suite": suite, "columns": columns}


def measured(before: float, after: float, scenarios: str = "f00d") -> BeforeAfter:
    return BeforeAfter(
        checkpoint="phase-00003",
        env_steps=530,
        before=record(before, scenarios),
        after=record(after, scenarios),
    )


@pytest.fixture
def run(tmp_path) -> Path:
    run = stop(tmp_path / "logs" / "train" / "mine")
    write_results(run, measured(0.165, 0.703))
    return run


def test_status_shows_the_table_that_the_run_left(run, capsys):
    out = status(capsys, run)
    assert re.search(r"^all +16\.5 +70\.3$", out, re.M), out
    assert re.search(r"^mass +8\.2 +35\.1$", out, re.M), out
    assert "After: checkpoint phase-00003, 530 env steps." in out
    found = status_json(capsys, run)["results"]
    assert found["after"]["columns"]["all"]["success"] == 0.703


def test_study_shows_before_and_after_of_every_run(run, tmp_path, capsys):
    other = stop(tmp_path / "other", seed=8)
    write_results(other, measured(0.165, 0.5))
    bare = stop(tmp_path / "bare", seed=9)
    runs = [str(path) for path in (run, other, bare)]
    main(["study", *runs])
    out = capsys.readouterr().out
    assert re.search(r"^paper seed 7 +16\.5 +70\.3$", out, re.M), out
    assert re.search(r"^paper seed 8 +16\.5 +50\.0$", out, re.M), out
    assert "Not the same scenarios" not in out
    write_results(other, measured(0.165, 0.5, "cafe"))
    main(["study", *runs])
    assert "Not the same scenarios" in capsys.readouterr().out


def test_report_has_the_table(run, tmp_path, capsys):
    pytest.importorskip("jinja2")
    assert main(["report", str(run), "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "index.html").read_text()
    row = re.search(r"<tr><th scope=\"row\">all</th>(.*?)</tr>", page)
    assert row and re.findall(r">([\d.]+)<", row[1]) == ["16.5", "70.3"]


def test_runs_are_listed_the_last_written_first(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stop(tmp_path / "logs" / "train" / "newer")
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.startswith("train/")]
    assert [row[0] for row in rows] == ["train/newer", "train/mine"]
    assert rows[1][4:] == ["16", ">", "70", "phase-00003"]
    assert main(["runs", "--json"]) == 0
    newer, mine = json.loads(capsys.readouterr().out)
    assert newer["results"] is None and mine["results"]["env_steps"] == 530


def test_a_damaged_run_hides_no_other(run, tmp_path, capsys):
    broken = stop(tmp_path / "logs" / "train" / "broken")
    journal = broken / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"paper", b"pamer"))
    assert main(["runs", str(tmp_path / "logs")]) == 0
    out, err = capsys.readouterr()
    assert "train/mine" in out and "train/broken" not in out
    assert f"{journal}:1: checksum does not match" in err


def test_checkpoints_of_a_run_are_listed_with_what_they_cost(run, capsys):
    assert main(["runs", str(run)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"phase-00003 +committed +530 ", out), out
    assert main(["runs", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c["env_steps"] for c in found] == [150, 300, 530]
    assert all(Path(c["path"]).is_dir() for c in found)


def test_rehearsal_is_said_to_have_no_weights(tmp_path, capsys):
    rehearsal = str(tmp_path / "rehearsal")
    assert main(["rehearse", "--seed", "1", "--run", rehearsal, "--json"]) == 0
    capsys.readouterr()
    assert main(["runs", rehearsal]) == 0
    out = capsys.readouterr().out
    assert "A rehearsal has no weights" in out and "takes a policy" not in out


def test_shipped_run_is_found_by_its_name(capsys):
    assert main(["runs", "core"]) == 0
    out = capsys.readouterr().out
    assert "35 on record, which are not kept." in out
    assert "takes the path" not in out, "there is none"


def test_note_fits_a_narrow_terminal(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 50
    assert "horizon status RUN tells" in " ".join(lines)


@pytest.mark.parametrize(
    ("name", "width", "line"),
    [
        (NAME, 80, f"{NAME} "),
        (NAME, 120, f"train/{NAME} "),
        (NAME.replace("horizon", "scalar-adr"), 80, "2026-11-18_08-07-01_scalar-adr- "),
    ],
)
def test_names_are_broken_only_between_their_parts(
    run, name, width, line, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", str(width))
    run.rename(run.parent / name)
    assert main(["runs", str(tmp_path / "logs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        any(text.startswith(line) for text in lines) and max(map(len, lines)) <= width
    )


def test_folder_without_runs_is_refused(tmp_path, capsys):
    assert main(["runs", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "there is no run under" in err and "`horizon train`" in err


def test_misspelt_run_is_guessed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["runs", "cor"]) == 2
    assert "there is no run cor: did you mean core?" in capsys.readouterr().err
    assert main(["runs"]) == 2
    assert "there is no run under logs" in capsys.readouterr().err


def test_altered_table_is_left_out_and_named_by_verify(run):
    file = run / "results.json"
    assert read_results(run) == measured(0.165, 0.703)
    file.write_bytes(file.read_bytes().replace(b"0.703", b"0.903"))
    with pytest.warns(UserWarning, match=r"results.json is damaged"):
        assert read_results(run) is None
    _, findings = verify_run(run / "journal.jsonl")
    problems = next(f for f in findings if f.part == "telemetry").problems
    assert any("results.json is damaged" in problem for problem in problems)
