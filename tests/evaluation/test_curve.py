"""Curves: their columns, their area and its interval, differences between methods."""

from dataclasses import replace

import numpy as np
import pytest
from tables import table_of

from horizon_rl.domains import paper_catalogue
from horizon_rl.evaluation.control import drop_control
from horizon_rl.evaluation.curve import SEVERITIES, curve_suite
from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.results import to_json
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.policies.load import load_policy
from horizon_rl.show.curve_table import curve_figure, curve_table
from horizon_rl.show.table import Cell
from horizon_rl.support.errors import InputError


def evaluate(
    name: str, *, all_: list[list[bool]], core: list[list[bool]]
) -> Evaluation:
    """Return an evaluation with these successes, [severities, scenarios]."""
    columns = {"none": [True] * len(all_[0])}
    for curve, table in {"all": all_, "core": core}.items():
        names = (f"{curve}@{severity:g}" for severity in SEVERITIES)
        columns |= dict(zip(names, table, strict=True))
    tables = {
        name: table_of([1000] * len(won), np.where(won, 0.3, 0.5))
        for name, won in columns.items()
    }
    return Evaluation(replace(load_policy("stand"), name=name), curve_suite(), tables)


YES, NO = [True] * 4, [False] * 4
HALF = [True, True, False, False]


def test_curves_are_those_of_the_suites_with_these_severities():
    suite = curve_suite()
    frozen = suite.frozen
    assert list(suite.curves) == ["all", "core"]
    assert suite.curves["core"] == ("core@0.25", "core@0.5", "core@0.75", "core@1")
    assert len(frozen) == 9
    for severity in SEVERITIES:
        ood = load_suite("ood", severity).frozen
        assert frozen[f"all@{severity:g}"].digest == ood["all"].digest
        core = load_suite("compositions", severity).frozen["core"]
        assert frozen[f"core@{severity:g}"].digest == core.digest
        assert frozen["none"].digest == ood["none"].digest
    test = load_suite("ood", 1.0, draw="test").frozen["all"]
    assert curve_suite(draw="test").frozen["all@1"].digest == test.digest


def test_groups_of_ones_own_have_a_curve():
    suite = curve_suite(["mass,com", "all"])
    assert list(suite.curves) == ["all", "mass,com"]
    column = next(c for c in suite.columns if c.name == "mass,com@0.5")
    ranges = paper_catalogue().ranges({"mass": 0.5, "com": 0.5})
    assert {name: spans[0] for name, spans in column.spans.items()} == ranges
    with pytest.raises(InputError, match="unknown group 'mess'"):
        curve_suite(["mess"])


def test_area_is_the_mean_success_over_the_severities():
    found = evaluate("a", all_=[YES, HALF, HALF, NO], core=[YES] * 4)
    curves = to_json(found, None, {}, {})["curve"]
    assert curves["all"]["success"] == [1.0, 0.5, 0.5, 0.0]
    assert curves["all"]["area"] == 0.5 and curves["core"]["area"] == 1.0
    assert curves["all"]["close"] == [0.0] * 4
    # Scenarios score 0.75 or 0.25: four times as many yes-or-no episodes.
    assert curves["all"]["interval"]["low"] == pytest.approx(0.280, abs=1e-3)
    elsewhere = replace(found, columns={"all": found.columns["all@1"]})
    assert "curve" not in to_json(
        replace(elsewhere, suite=load_suite("ood")), None, {}, {}
    )


def test_column_with_an_at_is_no_curve(make_suite):
    suite = make_suite('[columns]\nplain = {}\n"wet@night".levels = { contact = 0.5 }')
    tables = dict.fromkeys(suite.frozen, table_of([1000] * 4, [0.3] * 4))
    found = Evaluation(load_policy("stand"), suite, tables)
    assert "curve" not in to_json(found, None, {}, {})


def test_means_leave_out_the_control_on_every_robot():
    assert drop_control({"none/a1": 1, "none/go2": 2, "nonesuch": 3}) == {"nonesuch": 3}
    assert drop_control({"none": 1}) == {"none": 1}


def test_table_of_methods_has_differences_to_the_first():
    ours = evaluate("ours", all_=[YES, YES, HALF, NO], core=[YES] * 4)
    theirs = evaluate("theirs", all_=[YES, HALF, NO, NO], core=[YES] * 4)
    table = curve_table({"theirs": [theirs], "ours": [ours]})
    assert table.headings[1:] == ("0", "0.25", "0.5", "0.75", "1", "area", "difference")
    assert [row[:1] for row in table.rows] == [
        *((Cell("all", "bold"),), ("theirs",), ("ours",), ()),
        *((Cell("core", "bold"),), ("theirs",), ("ours",)),
    ]
    row = table.rows[2]
    assert row[1:6] == ("100.0", "100.0", "100.0", "50.0", "0.0")
    # Two scenarios gain at 0.5, the other two at 0.75: each a quarter.
    assert row[-1] == "+25.0 [+25.0, +25.0]"
    assert table.rows[-1][-1] == "+0.0 [+0.0, +0.0]"


def test_seeds_of_a_method_have_a_spread():
    seeds = [
        evaluate("a", all_=[YES, YES, NO, NO], core=[YES] * 4),
        evaluate("a", all_=[YES, NO, NO, NO], core=[YES] * 4),
    ]
    rows = curve_table({"a": seeds}).rows
    assert [row[0] for row in rows] == ["all", "core"]
    assert rows[0][-1] == Cell("37.5 ± 17.7", "bold")


def test_figure_has_a_panel_per_curve_and_a_line_per_method():
    pytest.importorskip("matplotlib")
    ours = evaluate("ours", all_=[YES, HALF, NO, NO], core=[YES] * 4)
    figure = curve_figure({"ours": [ours], "theirs": [ours]})
    assert [ax.get_title() for ax in figure.axes] == ["all", "core"]
    line, _ = figure.axes[0].lines
    assert line.get_xdata().tolist() == [0.0, *SEVERITIES]
    assert line.get_ydata().tolist() == [100.0, 100.0, 50.0, 0.0, 0.0]
