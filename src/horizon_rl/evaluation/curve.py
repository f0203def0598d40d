"""Success against severity: a policy's curve, and its area, the headline figure.

One severity flatters those who trained for it. The area is the mean success over four,
from a quarter of the way to the limits themselves.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from horizon_rl.domains import Catalogue, paper_catalogue
from horizon_rl.evaluation.control import CONTROL
from horizon_rl.evaluation.draws import Draw
from horizon_rl.evaluation.evaluate import Evaluation
from horizon_rl.evaluation.statistics import share_interval
from horizon_rl.evaluation.suite import Column, Suite, spans_at
from horizon_rl.robots import REFERENCE, load_robot
from horizon_rl.support.records import encode

SEVERITIES = (0.25, 0.5, 0.75, 1.0)
ALL = "all"
"""The curve on which all groups are shifted."""
AVERAGED = ("success", "close", "length", "tracking_error")


def curve_suite(
    together: Sequence[str] = ("core",),
    robot: str | None = None,
    catalogue: Catalogue | None = None,
    draw: Draw = "dev",
) -> Suite:
    """Return the columns of the curves: the control, then every severity of each.

    Args:
        together: Groups that a curve shifts together, the others at the baseline, as
            `horizon train --groups` takes them; `all` has its curve anyway.
        robot: Body to use in place of Go2.
        catalogue: What the parameters and their ranges are; the paper's without it.
        draw: Which scenarios; they are those of `ood`.
    """
    catalogue, body = catalogue or paper_catalogue(), robot or REFERENCE
    load_robot(body)  # Refuses an unknown one before the long work begins.
    shifted = {ALL: catalogue.names}
    shifted |= {name: catalogue.select(name) for name in together if name != ALL}
    levels = {CONTROL: {}}
    curves: dict[str, tuple[str, ...]] = {}
    for name, groups in shifted.items():
        points = {f"{name}@{x:g}": dict.fromkeys(groups, x) for x in SEVERITIES}
        curves[name], levels = tuple(points), levels | points
    return Suite(
        name="curve",
        columns=tuple(
            Column(name=name, spans=spans_at(catalogue, level), robot=body)
            for name, level in levels.items()
        ),
        draw=draw,
        about="Success against severity: all groups, and some together",
        curves=curves,
        catalogue=catalogue,
    )


def area_by_scenario(evaluation: Evaluation, columns: Sequence[str]) -> np.ndarray:
    """Return every scenario's mean success over the severities, [scenarios].

    A scenario has one command and one place in the ranges at all severities, so it is
    the unit, not the episode.
    """
    return np.mean([evaluation.won(name) for name in columns], axis=0)


def measure_curves(
    evaluation: Evaluation, columns: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Put curves in numbers, from an evaluation and the summaries of its columns."""
    found = {}
    for curve, names in evaluation.suite.curves.items():
        shares = area_by_scenario(evaluation, names)
        found[curve] = {
            "severities": list(SEVERITIES),
            **{what: [columns[name][what] for name in names] for what in AVERAGED},
            "area": float(shares.mean()),
            "interval": encode(share_interval(shares)),
        }
    return found
