"""The methods that come with the package, each in a file of its own."""

from dataclasses import replace

from horizon_rl.curriculum.config import ClockCfg, CurriculumCfg
from horizon_rl.curriculum.early_stopping import EarlyCfg
from horizon_rl.curriculum.method import METHODS, Method, make_method
from horizon_rl.curriculum.methods.clock import Clock as Clock
from horizon_rl.curriculum.methods.horizon import Horizon as Horizon
from horizon_rl.curriculum.methods.paper import Paper as Paper
from horizon_rl.curriculum.scouting import LeapCfg
from horizon_rl.support.errors import InputError, require, unknown

ABLATIONS = ("joint", "feasibility-only", "no-rollback", "no-restore")
"""Of the paper's rule, each with one setting changed."""
CONTROLS = ("fixed", "linear", "wide", "base")
"""Levels by the clock."""
VARIANTS = (*ABLATIONS, *CONTROLS)
"""Names that stand for settings of a registered method."""


def check_method(name: str) -> None:
    """Refuse a name that is neither a registered method nor a variant of one."""
    names = sorted({*METHODS, *VARIANTS})
    if name not in names:
        raise InputError(unknown("method", name, names))


def choose_method(
    name: str,
    cfg: CurriculumCfg,
    *,
    early: EarlyCfg | None = None,
    leap: LeapCfg | None = None,
    clock_phases: int = 50,
    clock_level: float = 1.0,
) -> Method:
    """Return the method behind a name of the command line.

    Args:
        name: A registered method, or one of `VARIANTS`.
        cfg: Settings to start from; all that a variant does not define is kept.
        early: Looks at a running phase, for HORIZON and the paper's rule.
        leap: How HORIZON scouts and leaps.
        clock_phases: Phases in which `linear` goes from level 0 to its end.
        clock_level: Where `linear` ends, and where `fixed` stays.
    """
    check_method(name)
    require("clock_phases", clock_phases, 1, whole=True)
    clocks = {
        "fixed": ClockCfg(start=clock_level),
        "linear": ClockCfg(rise=clock_level / clock_phases, end=clock_level),
        "wide": ClockCfg(start=1.0),
        "base": ClockCfg(),
    }
    if name in clocks:
        return Clock(cfg=replace(cfg, clock=clocks[name]))
    if name in ("horizon", "paper") and cfg.clock:
        return Clock(cfg=cfg)
    if name == "horizon":
        return Horizon(cfg=cfg, early=early or EarlyCfg(), leap=leap or LeapCfg())
    if name not in ("paper", *ABLATIONS):
        return make_method(name, cfg, {})
    match name:
        case "joint":
            cfg = replace(cfg, joint=True)
        case "feasibility-only":
            cfg = replace(cfg, gates=replace(cfg.gates, preservation=False))
        case "no-rollback":
            cfg = replace(cfg, rollback=False)
        case "no-restore":
            cfg = replace(cfg, restore=False)
    return Paper(cfg=cfg, early=early or EarlyCfg())
