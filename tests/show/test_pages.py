"""Tables of pages come from records, and are what these make of them."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mujoco", reason="needs the extra train")
from horizon_rl.cli import main
from horizon_rl.cli.grid_plan import check_runs
from horizon_rl.grid.folder import read_collected
from horizon_rl.grid.study_file import load_study
from horizon_rl.show.glance import glance_table
from horizon_rl.show.pages import draw_figures, fill_page
from horizon_rl.show.record_tables import Choice, cost_points
from horizon_rl.show.table import to_markdown
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps, loads

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if "<!-- record" in page.read_text()
)
COLLECTED = {
    **{file: file.with_suffix(".toml") for file in (ROOT / "studies").glob("*.jsonl")},
    # Of runs that were stopped, or of before a study was run again.
    **{
        ROOT / f"docs/studies/{records}.jsonl": ROOT / f"studies/{study}.toml"
        for records, study in (
            ("2026-11-16-cost", "cost"),
            ("2026-11-16-cost-on-the-way", "cost"),
            ("2026-11-18-paper", "cost"),
            ("2026-11-18-short", "short"),
        )
    },
}


def evaluation(cell, success, *, mark=None, suite="ood", severity: Any = 0.5, **more):
    """One of a checkpoint somewhat before its mark."""
    columns = {
        name: {"success": s, "episodes": 64, "close": s / 2, "length": 1.0}
        for name, s in success.items()
    }
    where = {"name": suite, "draw": "dev", "severity": severity, "hash": "5eed" * 4}
    return {
        "policy": cell, "mark": mark, "env_steps": int(0.9 * (mark or 0)), "suite": where,
        "columns": columns, **more,
    }  # fmt: skip


def record(cell, seed, *evaluations):
    return {
        "run": f"{cell}_s{seed}", "cell": cell, "method": cell, "setting": "",
        "groups": ["mass"], "seed": seed, "coverage": {"mass": 0.25 + 0.5 * seed},
        "finished": True, "env_steps": 2_000_000, "phases": 4, "lost_env_steps": 500_000,
        "frontier_phases": [
            {"outcome": "full pass", "length": 0.9, "checkpoint_ratio": 1.0,
             "score": 1.0 + seed, "gain": 0.1},
        ],
        "left_out": {"baseline": 1, "clock": 0},
        "evaluations": list(evaluations),
    }  # fmt: skip


@pytest.fixture
def root(tmp_path) -> Path:
    curve = {"all": {"area": 0.4}}
    records = [
        record(
            cell,
            seed,
            evaluation(cell, {"all": base + 0.1 * seed}),
            evaluation(cell, {"mass": 0.9}),
            *(
                evaluation(
                    cell,
                    {"none": 1.0},
                    mark=m,
                    suite="curve",
                    severity=None,
                    curve={"all": {"area": curve["all"]["area"] + m / 1e8 + base}},
                )
                for m in (1e6, 2e6)
            ),
        )
        for cell, base in (("horizon", 0.3), ("fixed", 0.1))
        for seed in (0, 1)
    ]
    (tmp_path / "r.jsonl").write_text("".join(dumps(r) + "\n" for r in records))
    return tmp_path


def block(words: str, content: str = "") -> str:
    return f"Before.\n<!-- records: {words} -->\n{content}<!-- end of records -->\nAfter.\n"


def test_a_block_is_filled_and_the_rest_stays(root):
    page = fill_page(block("r.jsonl success severity=0.5", "old\n"), root)
    assert page.startswith("Before.\n<!-- records:") and page.endswith("-->\nAfter.\n")
    assert "old" not in page
    # Seeds 0.3 and 0.4: mean 35, sample deviation 7.07.
    assert "| all | **35.0 ± 7.1** | 15.0 ± 7.1 |" in page
    # Two evaluations of a run in one suite are not two seeds.
    assert "| mass | **90.0 ± 0.0** | **90.0 ± 0.0** |" in page
    assert fill_page(page, root) == page


def test_cells_are_chosen_and_ordered_by_patterns(root):
    page = fill_page(block("r.jsonl success severity=0.5 cells=fixed,h*"), root)
    assert "| column | fixed | horizon |" in page
    page = fill_page(block("r.jsonl success severity=0.5 cells=fixed"), root)
    assert "| all | 15.0 ± 7.1 |" in page


def test_iqm_is_of_the_middle_half_of_seeds_and_columns(root):
    page = fill_page(block("r.jsonl iqm severity=0.5"), root)
    # 0.3, 0.4 and twice 0.9: the middle half is 0.4 and 0.9.
    assert "| horizon | 2 | **62.5 ± 3.5** | **65.0 [" in page
    assert "| fixed | 2 | 52.5 ± 3.5 | 55.0 [" in page
    assert "over 2 columns of ood (dev) at severity 0.5" in page
    records = list(read_collected(root / "r.jsonl"))
    del records[0]["evaluations"][1]
    (root / "r.jsonl").write_text("".join(dumps(r) + "\n" for r in records))
    with pytest.raises(InputError, match="some runs lack columns of ood"):
        fill_page(block("r.jsonl iqm severity=0.5"), root)


def test_cost_and_coverage(root):
    page = fill_page(block("r.jsonl coverage"), root)
    assert "| horizon | 2 | 2.0 ± 0.0 | 4.0 ± 0.0 | 25.0 ± 0.0 | 50.0 ± 35.4 |" in page
    page = fill_page(block("r.jsonl cost suite=curve"), root)
    assert "| cell | 1.0 M | 2.0 M |" in page
    assert "| horizon | **71.0 ± 0.0** | **72.0 ± 0.0** |" in page
    assert "| fixed | 51.0 ± 0.0 | 52.0 ± 0.0 |" in page


def test_seeds_that_are_missing_and_runs_that_have_not_ended_are_said(root):
    file = root / "r.jsonl"
    whole, first, *others = map(loads, file.read_text().splitlines())
    # Of seed 1 of horizon, the first mark and column mass are left.
    first["evaluations"] = [e for e in first["evaluations"] if e["mark"] == 1e6]
    first["finished"] = False
    file.write_text("".join(dumps(r) + "\n" for r in (whole, first, *others)))

    def notes(words: str) -> str:
        return fill_page(block(f"r.jsonl {words}"), root)

    unfinished = "Not yet as their study asks (budget, evaluations): 1 of 4 runs."
    assert unfinished in notes("coverage") and unfinished in notes("diagnostic")
    for words in ("success severity=0.5", "close severity=0.5"):
        assert "Seeds: horizon 1, fixed 2." in notes(words)
        assert unfinished in notes(words)
    assert "Seeds" not in notes("success severity=0.5 cells=fixed")
    assert "horizon at 2.0 M 1, fixed at 1.0 M 2" in notes("cost suite=curve")
    # What it had reached at a mark, it had reached.
    assert unfinished not in notes("cost suite=curve")


def test_cost_is_drawn_where_its_block_names_a_figure(root, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    monkeypatch.chdir(root)
    Path("page.md").write_text(block("r.jsonl cost suite=curve figure=cost.png"))
    assert main(["pages", "page.md", "--check"]) == 1
    assert not Path("cost.png").exists()
    assert main(["pages", "page.md"]) == 0
    assert "cost.png" in capsys.readouterr().out
    assert Path("cost.png").read_bytes().startswith(b"\x89PNG")
    points = cost_points(read_collected(root / "r.jsonl"), Choice(suite="curve"))
    found = [(p.method, p.seed, p.env_steps, round(p.success, 6)) for p, _ in points]
    assert found[:3] == [
        ("horizon", 0, 9e5, 0.71),
        ("horizon", 0, 1.8e6, 0.72),
        ("horizon", 1, 9e5, 0.71),
    ]
    # No evaluation of ood has a mark, and no curve is of the column core.
    for words in ("cost", "cost suite=curve column=core"):
        with pytest.raises(InputError, match=r"no evaluation in .* and a mark"):
            draw_figures(block(f"r.jsonl {words} figure=no.png"), root)
        with pytest.raises(InputError, match=r"no evaluation in .* and a mark"):
            fill_page(block(f"r.jsonl {words}"), root)


def test_costs_in_other_scenarios_are_not_compared(root):
    path = root / "r.jsonl"
    records = [loads(line) for line in path.read_text().splitlines()]
    for number, one in enumerate(records):
        for found in one["evaluations"]:
            if found["mark"]:
                found["columns"]["all@0.5"] = {"success": 0.5, "hash": str(number % 2)}
    path.write_text("".join(dumps(r) + "\n" for r in records))
    with pytest.raises(InputError, match="scenarios of column all differ"):
        fill_page(block("r.jsonl cost suite=curve"), root)


def test_shipped_policies_are_a_source_of_their_own(root):
    page = fill_page(
        block("models success suite=robots draw=test cells=core,base"), root
    )
    assert "| column | core | base | impossible |" in page
    with pytest.raises(InputError, match="no cell is called paper; there are base"):
        fill_page(block("models success cells=paper"), root)
    with pytest.raises(InputError, match="accepted of models: success, close, gl"):
        fill_page(block("models coverage"), root)
    with pytest.raises(InputError, match="glance is of models alone"):
        fill_page(block("r.jsonl glance"), root)
    with pytest.raises(InputError, match="unknown key of glance 'severity'"):
        fill_page(block("models glance severity=0.9"), root)
    # Policies of different times, whose suites had the same name.
    with pytest.raises(InputError, match="differ in some column"):
        fill_page(block("models glance"), root)
    with pytest.raises(InputError, match="differ in some column: take fewer cells"):
        fill_page(block("models success severity=0.5 cells=base-mlp,core-quiet"), root)


def test_a_glance_is_a_row_of_means_for_every_policy():
    def columns(**success):
        return {
            name.replace("_", "@0."): {"success": s, "tracking_error": 1.0 - s}
            for name, s in success.items()
        }

    def ran(suite, draw="test", **success):
        where = {"name": suite, "draw": draw, "severity": None, "hash": suite}
        return {"suite": where, "columns": columns(**success)}

    curve = ran("curve", none=0.9, all_25=1.0, all_5=0.8, all_75=0.4)
    curve["curve"] = {"all": {"area": 0.6}}
    curve["columns"]["all@1"] = {"success": 0.2, "tracking_error": 1.0}
    robots = ran("robots", none=0.0, go2=1.0, a1=0.5)
    robots["columns"]["go2-own"] = {"success": 0.3, "tracking_error": 1.0}
    table = glance_table(
        [
            {"cell": "a", "env_steps": 2_500_000, "evaluations": [curve, robots]},
            {
                "cell": "b",
                "env_steps": 0,
                # Of the other draw, or without an area.
                "evaluations": [
                    ran("robots", "dev", go2=1.0),
                    ran("curve", none=1.0, all_5=0.9),
                ],
            },
        ],
        "test",
    )
    shown = to_markdown(table).splitlines()[4:6]
    # The control does not count in the robots' mean.
    assert shown == [
        "| a | 2.5 | 60.0 | 80.0 | 40.0 | 20.0 | - | - | 75.0 | 30.0 | 0.100 |",
        "| b | 0.0 | - | **90.0** | - | - | - | - | - | - | **0.000** |",
    ]


def test_diagnostic_pools_the_phases_of_all_runs(root):
    page = fill_page(block("r.jsonl diagnostic"), root)
    assert "4 frontier phases of 4 run(s)" in page
    assert "| full pass | 4 | 0.900 | 1.000 | +0.1000 | 100.0% |" in page
    assert "Left out: 4 phase(s) at the baseline." in page


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("r.jsonl", "accepted: FILE.jsonl KIND"),
        ("r.jsonl sucess", "unknown kind of table 'sucess': did you mean 'success'"),
        ("r.jsonl success sevrity=1", "unknown key of success 'sevrity'"),
        ("r.jsonl success figure=a.png", "unknown key of success 'figure'"),
        ("r.jsonl cost figure=a.svg", "accepted: figure=FILE.png"),
        ("r.jsonl success severity=high", "severity=high: accepted: a number"),
        ("r.jsonl success severity=1", "no evaluation in ood .dev. at severity 1"),
        ("r.jsonl success cells=paper", "no cell is called paper; there are horizon"),
        ("none.jsonl success", "cannot read records"),
    ],
)
def test_what_is_wrong_with_a_block_is_said(root, words, complaint):
    with pytest.raises(InputError, match=f"page: '{words}': .*{complaint}"):
        fill_page(block(words), root)


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (block("r.jsonl coverage").replace("end of", "end"), 2),
        (block("r.jsonl coverage").replace("records:", "record:"), 2),
        (block("r.jsonl coverage").replace("end of", "end") + block("r.jsonl cost"), 2),
    ],
)
def test_a_block_that_would_be_skipped_is_refused(root, page, line):
    with pytest.raises(InputError, match=f"page: line {line}: '<!-- record"):
        fill_page(page, root)


def test_no_page_is_no_success(capsys):
    assert main(["pages", "--check"]) == 2
    assert "name at least one page" in capsys.readouterr().err


def test_command_fills_and_checks(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    page = root / "page.md"
    page.write_text(block("r.jsonl coverage"))
    assert main(["pages", "page.md", "--check"]) == 1
    assert "not what their records make of them: page.md" in capsys.readouterr().err
    assert main(["pages", "page.md"]) == 0
    assert main(["pages", "page.md", "--check"]) == 0
    text = page.read_text()
    page.write_text(text.replace("25.0", "26.0"))
    assert main(["pages", "page.md", "--check"]) == 1
    assert main(["pages", "none.md"]) == 2
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["pages", "--help"])
    assert "(default: )" not in capsys.readouterr().out


# The project's own.


def test_some_page_is_filled_from_records():
    assert PAGES and COLLECTED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_what_its_records_make_of_it(page):
    text = page.read_text()
    assert fill_page(text, ROOT, page.name) == text


@pytest.mark.parametrize("file", sorted(COLLECTED), ids=lambda file: file.name)
def test_records_are_of_the_runs_that_the_study_plans(file, monkeypatch):
    monkeypatch.chdir(ROOT)
    runs = check_runs(load_study(COLLECTED[file]), file.stem, Path())
    planned = {c.plan.name: loads(dumps(c.plan.settings)) for c in runs}
    for found in read_collected(file):
        assert found["settings"] == planned[found["run"]]
        assert found["finished"] or file.parent != ROOT / "studies"


@pytest.mark.parametrize("evaluations", [1, [1], [{}], [evaluation("a", {"all": 2.0})]])
def test_damaged_records_are_refused_by_the_files_name(tmp_path, evaluations):
    file = tmp_path / "x.jsonl"
    file.write_text(dumps(record("a", 0) | {"evaluations": evaluations}))
    with pytest.raises(InputError, match=r"x\.jsonl: not records"):
        read_collected(file)
