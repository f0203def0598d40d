"""The methods that come with the package, each in a file of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

from horizon_rl.curriculum.config import ClockCfg, CurriculumCfg, Plan
from horizon_rl.curriculum.early_stopping import EarlyCfg
from horizon_rl.curriculum.method import METHODS, Method, settings_of
from horizon_rl.curriculum.methods.adr import Adr as Adr
from horizon_rl.curriculum.methods.adr import AdrCfg as AdrCfg
from horizon_rl.curriculum.methods.clock import Clock as Clock
from horizon_rl.curriculum.methods.distill import Distill as Distill
from horizon_rl.curriculum.methods.distill import Teacher as Teacher
from horizon_rl.curriculum.methods.doraemon import Doraemon as Doraemon
from horizon_rl.curriculum.methods.doraemon import DoraemonCfg as DoraemonCfg
from horizon_rl.curriculum.methods.horizon import Horizon as Horizon
from horizon_rl.curriculum.methods.paper import Paper as Paper
from horizon_rl.curriculum.methods.plr import Plr as Plr
from horizon_rl.curriculum.methods.plr import PlrCfg as PlrCfg
from horizon_rl.curriculum.methods.scalar_adr import ScalarAdr as ScalarAdr
from horizon_rl.curriculum.scouting import LeapCfg
from horizon_rl.support.bounds import Bounded
from horizon_rl.support.errors import InputError, require, unknown
from horizon_rl.support.records import encode

ABLATIONS = ("joint", "feasibility-only", "no-rollback", "no-restore")
"""Of the paper's rule, each with one setting changed."""
CONTROLS = ("fixed", "linear", "wide", "base")
"""Levels by the clock."""
GRAM = "gram"
"""One level throughout, as of `fixed`: what is new about it is how it learns."""
VARIANTS = (*ABLATIONS, *CONTROLS, GRAM)
"""Names that stand for settings of a registered method."""


@dataclass(frozen=True, kw_only=True)
class MethodCfgs(Bounded):
    """Settings that only some methods have, each by the name of the method's field."""

    leap: LeapCfg = field(default_factory=LeapCfg)
    """HORIZON: how it scouts, leaps, waits and gives up."""
    adr: AdrCfg = field(default_factory=AdrCfg)
    """ADR: how its bounds are tested and moved."""
    doraemon: DoraemonCfg = field(default_factory=DoraemonCfg)
    """DORAEMON: its threshold and step, and where it starts."""
    plr: PlrCfg = field(default_factory=PlrCfg)
    """PLR: its buffer, and what is met again how often."""


def check_method(name: str) -> None:
    """Refuse a name that is neither a registered method nor a variant of one."""
    names = {*METHODS, *VARIANTS}
    if name not in names:
        # What the controls are made of is no word of the help.
        raise InputError(unknown("method", name, sorted(names - {"clock"})))


def choose_method(
    name: str,
    cfg: CurriculumCfg,
    settings: MethodCfgs | None = None,
    *,
    early: EarlyCfg | None = None,
    plan: Plan | None = None,
    clock_phases: int = 50,
    clock_level: float = 1.0,
    teachers: tuple[Teacher, ...] = (),
) -> Method:
    """Return the method behind a name of the command line.

    Args:
        name: A registered method, or one of `VARIANTS`.
        cfg: Settings to start from; all that a variant does not define is kept.
        settings: Settings of single methods; a method takes those it has a field for.
        early: Looks at a running phase, for HORIZON and the paper's rule.
        plan: What the run allows, for methods with settings that follow from it.
        clock_phases: Phases in which `linear` goes from level 0 to its end.
        clock_level: Where `linear` ends, and where `fixed` and `gram` stay.
        teachers: Whom `distill` learns from.
    """
    check_method(name)
    require("clock_phases", clock_phases, 1, whole=True)
    clocks = {
        "fixed": {"start": clock_level},
        GRAM: {"start": clock_level},
        "linear": {"rise": clock_level / clock_phases, "end": clock_level},
        "wide": {"start": 1.0},
        "base": {},
    }
    if name in clocks:
        return Clock(cfg=replace(cfg, clock=ClockCfg(**clocks[name])))
    if name in ("horizon", "paper") and cfg.clock:
        return Clock(cfg=cfg)
    match name:
        case "joint":
            cfg = replace(cfg, joint=True)
        case "feasibility-only":
            cfg = replace(cfg, gates=replace(cfg.gates, preservation=False))
        case "no-rollback":
            cfg = replace(cfg, rollback=False)
        case "no-restore":
            cfg = replace(cfg, restore=False)
    method = METHODS["paper" if name in ABLATIONS else name]
    settings = settings or MethodCfgs()
    given = {f.name: getattr(settings, f.name) for f in fields(MethodCfgs)}
    given |= {"early": early or EarlyCfg(), "plan": plan or Plan()}
    given["teachers"] = teachers
    own = {f.name for f in fields(method)}
    return method(cfg=cfg, **{k: value for k, value in given.items() if k in own})


def find_unread(method: Method, settings: MethodCfgs) -> Iterator[str]:
    """Name the settings that were changed although a method does not read them."""
    given, usual = encode(settings), encode(MethodCfgs())
    own = settings_of(method)
    for part in (name for name in usual if name not in own):
        for key, value in usual[part].items():
            if given[part][key] != value:
                yield f"{part}.{key}"
