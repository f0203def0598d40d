"""What policies can do, in few numbers: means over the columns of a suite."""

from collections.abc import Sequence
from statistics import fmean

from horizon_rl.evaluation.control import CONTROL, drop_control
from horizon_rl.evaluation.curve import SEVERITIES
from horizon_rl.evaluation.draws import Draw
from horizon_rl.runs.results import Record
from horizon_rl.show.numbers import show_number, show_percent
from horizon_rl.show.table import Table, bold_columns
from horizon_rl.support.errors import InputError

OWN_MOTORS = "-own"
"""How columns end in which a robot has its own motors, not Go2's scaled to it."""
ERROR = "error at 0, m/s"


def summarize(result: Record) -> dict[str, float]:
    """Say what an evaluation is in few numbers; motors of two kinds make no one mean."""
    if "curve" in result:
        half = {"all at 0.5": result["columns"]["all@0.5"]["success"]}
        return half | {"area of all": result["curve"]["all"]["area"]}
    if "all" in result["columns"]:
        return {"all": result["columns"]["all"]["success"]}
    scaled, own = _by_motors(result)
    if not own:
        return {"mean": fmean(scaled)}
    return {
        f"mean of {len(shares)} with {motors} motors": fmean(shares)
        for motors, shares in (("scaled", scaled), ("own", own))
    }


def glance_table(models: Sequence[Record], draw: Draw) -> Table:
    """Lay out what shipped policies did in a draw, a row each; a dash is not measured."""
    first: dict[tuple, Record] = {}
    for found in (found for model in models for found in model["evaluations"]):
        if suite_of(found)[1] == draw:
            check_scenarios([first.setdefault(suite_of(found), found), found])
    numbers = {model["cell"]: _measure(model, draw) for model in models}
    headings = next(iter(numbers.values()))
    table = Table(
        f"At a glance ({draw})",
        ("policy", "M env steps", *headings),
        tuple(
            (
                model["cell"],
                f"{model['env_steps'] / 1e6:.1f}",
                *(
                    show_number(x, ".3f") if heading == ERROR else show_percent(x)
                    for heading, x in numbers[model["cell"]].items()
                ),
            )
            for model in models
        ),
        ("Success, %; of a suite, the mean over its columns but the control.",),
    )
    return bold_columns(table, skip=2, lowest=(ERROR,))


def check_scenarios(evaluations: Sequence[Record]) -> None:
    """Refuse to compare policies in suites of one name that are not the same."""
    suites = sorted({found["suite"]["hash"][:12] for found in evaluations})
    if len(suites) > 1:
        raise InputError(
            f"suites {' and '.join(suites)} differ in some column: take fewer cells"
        )


def _measure(model: Record, draw: Draw) -> dict[str, float | None]:
    """Return a policy's numbers by heading; None: it was not measured."""

    def find(suite: str, severity: float | None = None) -> Record:
        for found in model["evaluations"]:
            if suite_of(found) == (suite, draw, severity):
                return found
        return {"columns": {}}

    def mean(
        suite: str, severity: float | None = None, *, own: bool = False
    ) -> float | None:
        shares = _by_motors(find(suite, severity))[own]
        return fmean(shares) if shares else None

    curve = find("curve")
    return {
        "area, %": curve.get("curve", {}).get("all", {}).get("area"),
        **{
            f"`all` at {x:g}": curve["columns"].get(f"all@{x:g}", {}).get("success")
            for x in SEVERITIES[1:]
        },
        "compositions, 0.5": mean("compositions", 0.5),
        "interventions": mean("interventions"),
        "robots, scaled motors": mean("robots"),
        "own motors": mean("robots", own=True),
        ERROR: curve["columns"].get(CONTROL, {}).get("tracking_error"),
    }


def suite_of(evaluation: Record) -> tuple[str, Draw, float | None]:
    """Return the suite of an evaluation: its name, draw and severity."""
    suite = evaluation["suite"]
    # Before there were two draws, there was dev.
    return suite["name"], suite.get("draw", "dev"), suite["severity"]


def _by_motors(evaluation: Record) -> tuple[list[float], list[float]]:
    """Return success by column but the control: with scaled motors, with own ones."""
    kinds: tuple[list[float], list[float]] = [], []
    for name, column in drop_control(evaluation["columns"]).items():
        kinds[name.endswith(OWN_MOTORS)].append(column["success"])
    return kinds
