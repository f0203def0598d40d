"""`horizon report` from runs of every kind, and what it says of bad input."""

import json
import re

import pytest
from html_check import complaints

from horizon_rl.cli import main
from horizon_rl.cli.report import find_sources
from horizon_rl.policies.shipped import model_path
from horizon_rl.show.report.gather import gather
from horizon_rl.show.report.page import render_sections
from run_files import stop

pytest.importorskip("matplotlib")
SECTIONS = (
    *("summary", "frontiers", "coverage", "ood", "interventions", "suites", "signal"),
    "cost",
    *("gates", "verdicts", "diagnostic", "failures", "steps", "settings", "commands"),
)


def read(folder) -> str:
    return (folder / "index.html").read_text()


def rehearse(run) -> None:
    flags = ["--groups", "mass", "--curriculum.max-phases", "3"]
    assert main(["rehearse", *flags, "--run", str(run)]) == 0


def test_page_of_a_shipped_run_is_whole_and_needs_nothing_else(shipped_report):
    page = read(shipped_report)
    assert complaints(page) == []
    assert re.findall(r'<section id="(\w+)"', page) == list(SECTIONS)
    assert "10 / 0" in page and "56.8%" in page and "base-mlp" in page
    assert "horizon train --preset gpu --policy mlp" in page  # What made it.
    assert "horizon eval core-mlp --severity 0.5 --explain" in page  # What is missing.


def test_every_figure_lies_beside_the_page_as_svg_and_png(shipped_report):
    page = read(shipped_report)
    links = set(re.findall(r'href="(figures/[^"]+)"', page))
    files = {f"figures/{f.name}" for f in (shipped_report / "figures").iterdir()}
    assert links == files and len(files) == 2 * page.count("<figure>")
    assert all((shipped_report / f).stat().st_size > 1000 for f in files)


def test_same_run_gives_the_same_page(shipped_report, tmp_path):
    assert main(["report", "core-mlp", "--out", str(tmp_path / "again")]) == 0
    assert read(tmp_path / "again") == read(shipped_report).replace(
        str(shipped_report), str(tmp_path / "again")
    )


def test_rehearsal_has_a_report_without_policies_to_measure(tmp_path, capsys):
    run = tmp_path / "run"
    main(["rehearse", "--curriculum.max-phases", "12", "--run", str(run)])
    assert main(["report", str(run), "--out", str(tmp_path / "out")]) == 0
    page = read(tmp_path / "out")
    assert complaints(page) == []
    assert (
        "No run here has a policy to evaluate." in page and "horizon eval" not in page
    )


def test_results_and_curve_fill_their_sections(tmp_path, capsys):
    column = {"success": 0.25, "episodes": 64}
    suite = {"name": "interventions", "hash": "abc", "severity": None}
    results = {"policy": "core-mlp", "suite": suite, "columns": {"stilts": column}}
    (tmp_path / "r.json").write_text(json.dumps(results))
    rows = [
        {"method": "core-mlp", "seed": 0, "env_steps": s, "success": s / 9}
        for s in (1, 4, 9)
    ]
    (tmp_path / "c.json").write_text(json.dumps(rows))
    args = ["report", "core-mlp", "--results", str(tmp_path / "r.json")]
    args += ["--cost-curve", str(tmp_path / "c.json"), "--out", str(tmp_path / "out")]
    assert main(args) == 0
    page = read(tmp_path / "out")
    assert "stilts" in page and "25.0" in page and "figures/cost-curve.svg" in page
    assert "--suite interventions" not in page and complaints(page) == []


def test_results_by_a_runs_path_are_called_by_its_name(tmp_path, capsys):
    run = model_path("core-mlp") / "run"
    suite = {"name": "mine", "hash": "abc", "severity": None}
    results = [
        {
            "policy": str(run / "checkpoints" / "x"),
            "suite": suite,
            "columns": {"q": {"success": 0.5}},
        }
    ]
    (tmp_path / "r.json").write_text(json.dumps(results))
    args = ["report", f"mine={run}", "--results", str(tmp_path / "r.json")]
    assert main([*args, "--out", str(tmp_path / "out")]) == 0
    assert '<th scope="col">mine</th>' in read(tmp_path / "out")


def test_report_in_the_place_of_another_leaves_none_of_its_figures(tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    rehearse(run)
    main(["report", f"a={run}", "--out", str(out)])
    (out / "figures" / "mine.png").touch()
    assert list(out.glob("figures/frontiers-a*.svg"))
    assert main(["report", f"b={run}", "--out", str(out)]) == 0
    assert not list(out.glob("figures/*-a-*"))
    assert (out / "figures" / "mine.png").exists()
    links = re.findall(r'href="(figures/[^"]+)"', read(out))
    assert links and all((out / link).exists() for link in links)


def test_torn_line_is_told_once_and_the_rest_is_shown(tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    rehearse(run)
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-40])
    capsys.readouterr()
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert capsys.readouterr().err.count("torn last line") == 1
    assert "<dd>2</dd>" in read(out)  # Phases judged.


def test_every_run_without_a_map_has_a_command_for_it():
    material = gather(find_sources(["core-mlp", "full-mlp"]))
    sections, _ = render_sections(material)
    (failures,) = (s.body for s in sections if s.id == "failures")
    assert (
        "<code>horizon eval core-mlp --severity 0.5 --explain all\n"
        "horizon eval full-mlp --severity 0.5 --explain all</code>"
    ) in failures


def test_start_that_has_a_new_meaning_is_told_by_the_record():
    (run,) = (material := gather(find_sources(["core-quiet"]))).runs
    assert run.summary.start == "from core as it was after 99.7 M env steps"
    beside = {name for suite in material.suites for name in suite.policies}
    assert "core-quiet" in beside and "core" not in beside


def test_page_of_somebody_else_is_not_replaced(tmp_path, capsys):
    (tmp_path / "index.html").write_text("<p>mine</p>")
    assert main(["report", "core-mlp", "--out", str(tmp_path)]) == 2
    assert "its index.html is no report" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<p>mine</p>"


def test_journal_stands_for_its_run(tmp_path, capsys):
    journal = model_path("core-mlp") / "run" / "journal.jsonl"
    assert main(["report", str(journal), "--out", str(tmp_path)]) == 0
    assert f"horizon eval {journal.parent} --suite" in read(tmp_path)


def test_last_run_is_reported_unless_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    stop(tmp_path / "logs" / "train" / "mine")
    assert main(["report"]) == 0
    assert "horizon report logs/train/mine --out report" in read(tmp_path / "report")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "there is no run under logs/: name one"),
        (["corre-mlp"], "there is no run corre-mlp: did you mean core-mlp?"),
        (["base-mlp"], "'base-mlp' comes without the run that made it"),
        (["core-mlp", "x=core-mlp"], "core-mlp is named twice"),
        (["core-mlp", "--evaluate", "-1"], "--evaluate is -1; accepted: whole numbers"),
        (["core-mlp", "--results", "no.json"], "cannot read no.json"),
        (["core-mlp", "--cost-curve", "no.json"], "cannot read no.json"),
        (["core-mlp", "--out", "file"], "--out file: Not a directory"),
        (["core-mlp", "--out", "file/x"], "--out file/x: Not a directory"),
        (["core-mlp", "--out", "/proc/x"], "--out /proc/x: No such file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    args, says, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["report", *args]) == 2
    assert says in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
