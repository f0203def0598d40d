"""Settings of a training run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Annotated

from horizon_rl.curriculum import (
    Clock,
    CurriculumCfg,
    EarlyCfg,
    Method,
    MethodCfgs,
    Plan,
    Teacher,
    check_method,
    choose_method,
)
from horizon_rl.curriculum.method import check_plan
from horizon_rl.curriculum.methods import Distill
from horizon_rl.domains import Catalogue
from horizon_rl.domains.distribution import SCORE
from horizon_rl.learning import LearnerCfg
from horizon_rl.support.bounds import (
    Count,
    CountOrNone,
    EnvSteps,
    NumScenarios,
    NumWorlds,
    Seed,
    Within,
)
from horizon_rl.support.errors import InputError, require
from horizon_rl.task import RewardCfg, TaskCfg

MIN_EPISODES_A_PHASE = 2.5
"""Least length of a phase, in longest episodes. Of its episodes only those count that
began in it and could have lasted: in a shorter phase there would be too few."""
MAX_ROWS = 1 << 22
"""Scenarios of a phase: they lie in memory at once, a few kilobytes each."""


@dataclass(frozen=True, kw_only=True)
class TrainCfg(MethodCfgs):
    """One training run: a curriculum, and the worlds and the learner it governs."""

    method: str = "horizon"
    """HORIZON (horizon), the paper's own rule (paper), that rule's ablations joint,
    feasibility-only, no-rollback and no-restore; automatic domain randomisation (adr),
    one difficulty moved by success and failure (scalar-adr), the widest distribution under
    which enough episodes succeed (doraemon), instances met again by what is learnt from
    them (plr), teachers (distill), adaptation with a robust mode to fall back to (gram);
    or a control: fixed, linear, wide, base."""
    groups: str = "core"
    """Domain groups to widen: core, full, or names with commas between them."""
    levels: str = ""
    """Groups that stay at a level, as in contact=0.5,reset=0.2; they are not widened.
    All others that are not widened stay at the baseline. One number alone, as in 0.5,
    is the level at which `fixed` and `gram` train all their groups, or at which `linear`
    ends."""
    teachers: tuple[str, ...] = ()
    """Method `distill`: shipped policies, runs or checkpoints, each of which labels worlds
    of its own domain: the levels it was trained at, or levels after an @, as in
    runs/mine@mass=0.5,com=0.2. Their env steps count as spent."""
    robot: str = "go2"
    """Preset or intervention (go2, go2+stilts), an MJCF file of your own (mine.xml),
    `generated` for random bodies, or `mixed` for one half Go2 and the other half
    generated bodies and presets."""
    num_bodies: Annotated[int, Within(1, 4096)] = 64
    """Bodies to generate, where the robot is `generated` or `mixed`."""
    num_envs: NumWorlds = 4096
    """Worlds; of several ranks (torchrun), each has this many."""
    rows_per_env: Annotated[int, Within(1, 1024)] = 4
    """Scenarios to draw per world and phase."""
    phase_iterations: Count = 500
    """Iterations of a phase; never fewer than last 2.5 times the longest episode."""
    window: Count = 500
    """Gate L: the phase's last episodes that it judges."""
    probe_scenarios: NumScenarios = 1024
    """Gate C: scenarios on which the policy is compared with the checkpoint; 0: not at
    all, and gate C is switched off."""
    anchor_scenarios: NumScenarios = 256
    """Scenarios at level 0 on which every phase is measured: slow drift, which HORIZON's
    gate C bounds."""
    scout_scenarios: NumScenarios = 24
    """HORIZON: scenarios of each level that it scouts; 0: it cannot leap."""
    early: EarlyCfg = field(default_factory=EarlyCfg)
    """Looks at a running phase, which may end it."""
    stagger: bool = False
    """Let worlds begin a phase at random ages of their first episode, instead of all at
    once."""
    keep_checkpoints: CountOrNone = 0
    """Checkpoints of phases to keep, the last ones; 0: all. The first one, and what the
    run goes on from, always stay."""
    rollback_rate: Annotated[float, Within(1e-3, 1.0)] = 1.0
    """Factor on the learning rate after a rollback."""
    linear_phases: CountOrNone = 0
    """Phases in which method `linear` goes from level 0 to its end; 0: two thirds of
    those that the budget of env steps allows, or 50 without one."""
    seed: Seed = 0
    """Seed of everything random."""
    steps: EnvSteps = 0
    """Budget: environment steps of all ranks, probes and rolled-back phases included; 0
    is no limit. A phase that was begun is finished."""
    minutes: Annotated[float, Within(0.0, 1e8)] = 0.0
    """Budget: minutes; 0 is no limit. A phase that was begun is finished. On the command
    line, minutes without --steps mean no limit of env steps."""
    curriculum: CurriculumCfg = field(default_factory=CurriculumCfg)
    """Gates and budget of every method; how the paper's frontiers advance and retreat."""
    task: TaskCfg = field(default_factory=TaskCfg)
    """The task."""
    rewards: RewardCfg = field(default_factory=RewardCfg)
    """Weights of the reward's terms; the paper's."""
    learner: LearnerCfg = field(default_factory=LearnerCfg)
    """Networks and algorithm."""

    def __post_init__(self):
        super().__post_init__()
        rows = self.num_envs * self.rows_per_env
        require("num_envs times rows_per_env", rows, 1, MAX_ROWS)
        check_method(self.method)
        if self.method == "gram":
            # A method of training in the first place: it brings its algorithm.
            learner = replace(self.learner, algorithm="gram")
            object.__setattr__(self, "learner", learner)

    @property
    def num_probed(self) -> int:
        """Scenarios of all probe sets of a phase, at most: they fit one pass."""
        scouted = self.leap.num_scouted if self.method == "horizon" else 0
        gated = self.anchor_scenarios + 2 * self.probe_scenarios
        return gated + scouted * self.scout_scenarios

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of an iteration, by one rank."""
        return self.num_envs * self.learner.ppo.num_steps

    @property
    def iterations(self) -> int:
        """Iterations that a phase lasts."""
        least = MIN_EPISODES_A_PHASE * self.task.max_steps / self.learner.ppo.num_steps
        return max(self.phase_iterations, ceil(least))

    def plan(self, catalogue: Catalogue, ranks: int = 1) -> Plan:
        """Return what the run allows, if every episode lasts."""
        groups, longest = widened_groups(self, catalogue), self.task.max_steps
        probed = self.anchor_scenarios + 2 * self.probe_scenarios
        phase_steps = self.iterations * self.steps_per_iteration * ranks
        steps = self.steps or self.curriculum.max_env_steps
        cohorts = self.iterations * self.learner.ppo.num_steps / longest
        # What was under way as the phase began does not count.
        cohorts = cohorts - 1.0 if self.stagger else floor(cohorts)
        return Plan.of(
            catalogue,
            groups,
            phases=min(
                # A phase that was begun is finished.
                ceil(steps / (phase_steps + probed * longest)),
                self.curriculum.max_phases,
            ),
            episodes=int(cohorts * self.num_envs * ranks),
        )

    def make_method(
        self, catalogue: Catalogue, ranks: int = 1, teachers: tuple[Teacher, ...] = ()
    ) -> Method:
        """Return the curriculum's method with its settings.

        Args:
            catalogue: The groups of parameters.
            ranks: How many processes train together.
            teachers: Those that the settings name.
        """
        self._check_teachers(teachers, fixed_levels(self, catalogue))
        cfg = self.curriculum
        if not self.probe_scenarios:
            # What is not measured cannot be asked for.
            cfg = replace(cfg, gates=replace(cfg.gates, preservation=False))
        level = self.clock_level
        if level is None:
            # What has no level among those that are named stays at the baseline.
            stays = self.method == "fixed" or (self.method == "gram" and self.levels)
            level = 0.0 if stays else 1.0
        plan = self.plan(catalogue, ranks)
        method = choose_method(
            self.method,
            cfg,
            self,
            early=self.early,
            plan=plan,
            clock_phases=self.linear_phases or ceil(2 * plan.phases / 3) or 50,
            clock_level=level,
            teachers=teachers,
        )
        if not isinstance(method, (Clock, Distill)):
            check_plan(plan, tuple(plan.groups))  # They widen what can be widened.
        self.check_scores(method, has_scores=self.learner.algorithm != "gram")
        self.check_budget()
        return method

    def check_scores(self, method: Method, *, has_scores: bool) -> None:
        """Refuse a method that asks for scores where the algorithm has none."""
        if SCORE in (method.outcome_parameters or ()) and not has_scores:
            raise InputError(
                f"method {self.method} needs an algorithm that scores steps; "
                f"'{self.learner.algorithm}' does not. Accepted: ppo, or one with "
                "value_losses()"
            )

    def _check_teachers(
        self, teachers: tuple[Teacher, ...], fixed: Mapping[str, float]
    ) -> None:
        if self.teachers and self.method != "distill":
            raise InputError(
                f"method {self.method} has no teachers; --teachers are for distill"
            )
        algorithm = self.learner.algorithm
        if self.method == "distill" and algorithm != "ppo":
            raise InputError(
                "method distill has its own loss, and PPO after it: "
                f"--learner.algorithm is '{algorithm}'; accepted: ppo"
            )
        for teacher in teachers:
            if both := [
                g for g, level in teacher.levels.items() if level and g in fixed
            ]:
                raise InputError(
                    f"teacher {teacher.name} is at home in {', '.join(both)}, which "
                    "--levels fix: leave them out there, or out of its domain"
                )
        spent = Distill(teachers=teachers).charged
        if 0 < self.steps <= spent:
            raise InputError(
                f"the teachers cost {spent:,} env steps, which count: --steps "
                f"{self.steps} leaves none. Accepted: more than that, or 0"
            )

    def check_budget(self) -> None:
        """Refuse a budget that leaves no room for parts of an algorithm.

        These are shares of the env steps: PPO after distillation, and those of GRAM, which
        has to calibrate its policy at the end.
        """
        if self.learner.distill.ppo_from is not None and not self.steps:
            raise InputError("--learner.distill.ppo-from is a share of --steps: set it")
        if self.learner.algorithm != "gram":
            return
        gram, probes = self.learner.gram, self.num_probed * self.task.max_steps
        phase = self.iterations * self.steps_per_iteration + probes
        # An episode of each world that begins in it, whatever their ages.
        whole = 2 * self.num_envs * self.task.max_steps + probes
        left = (1.0 - gram.history_from, phase), (1.0 - gram.calibrate_from, whole)
        # Rounded first: 0.1 is not quite a tenth.
        least = max(ceil(round(part / max(share, 1e-9), 3)) for share, part in left)
        if self.steps < least:
            raise InputError(
                "GRAM divides the run's --steps between its parts, and the last must "
                f"last two episodes: they are {self.steps}; accepted: {least} or more, "
                "or a lower --learner.gram.calibrate-from"
            )

    @property
    def clock_level(self) -> float | None:
        """Where a fixed level is or `linear` ends, if `levels` are one number."""
        try:
            level = float(self.levels)
        except ValueError:
            return None
        require("levels", level, 0.0, 1.0)
        if self.method not in ("fixed", "linear", "gram"):
            raise InputError(
                f"levels '{self.levels}' name no group, as mass=0.5 does; a number alone "
                "goes with method fixed, linear or gram"
            )
        return level


def fixed_levels(cfg: TrainCfg, catalogue: Catalogue) -> dict[str, float]:
    """Return the groups that stay at levels of their own."""
    return {} if cfg.clock_level is not None else catalogue.parse_levels(cfg.levels)


def widened_groups(cfg: TrainCfg, catalogue: Catalogue) -> tuple[str, ...]:
    """Name the groups that the curriculum moves: those asked for that are not fixed."""
    if cfg.method == "fixed" and not cfg.levels:
        raise InputError("method fixed needs --levels, as in 0.5 or mass=0.5,com=0.2")
    fixed = fixed_levels(cfg, catalogue)
    groups = tuple(g for g in catalogue.select(cfg.groups) if g not in fixed)
    if not groups and cfg.method not in ("base", "fixed", "gram"):
        raise InputError(
            f"levels '{cfg.levels}' fix all of the groups '{cfg.groups}': method "
            f"{cfg.method} has none left to widen"
        )
    return groups
