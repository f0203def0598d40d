"""The two gates of a phase: is the candidate feasible, is the old skill preserved?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from horizon_rl.curriculum.config import GateCfg
from horizon_rl.curriculum.evidence import Evidence, split_by_size


@dataclass(frozen=True)
class Check:
    """One measured value against its threshold."""

    name: str
    value: float | None
    threshold: float | None
    at_least: bool
    """The value must reach the threshold; else it must not exceed it."""

    @property
    def passed(self) -> bool:
        if self.value is None or self.threshold is None:
            return False
        if self.at_least:
            return self.value >= self.threshold
        return self.value <= self.threshold

    @property
    def ratio(self) -> float:
        """How nearly the value meets its threshold, in [0, 1]; 1 if it does."""
        if self.passed:
            return 1.0
        if self.value is None or self.threshold is None:
            return 0.0
        low, high = sorted((self.value, self.threshold))
        if low >= 0.0:
            return low / high
        # Both negative: the nearer to zero is the better. Of unlike signs: none.
        return high / low if high < 0.0 else 0.0

    def __str__(self) -> str:
        if self.value is None or self.threshold is None:
            return f"{self.name} not measured"
        bound = "at least" if self.at_least else "at most"
        return f"{self.name} {self.value:.3g} ({bound} {self.threshold:.3g})"


@dataclass(frozen=True)
class Verdict:
    """What the gates say of a phase, with the numbers in words."""

    feasible: bool
    """Gate L: the policy survives and tracks on the candidate."""
    preserved: bool | None
    """Gate C: it still does as well as the checkpoint; None where C was not judged."""
    score: float
    """Composite recoverability score in [0, 1]: product of the gate ratios."""
    reason: str

    @property
    def passed(self) -> bool:
        return self.feasible and self.preserved is not False


def judge(
    evidence: Evidence,
    cfg: GateCfg,
    *,
    preservation: bool,
    further: Sequence[Check] = (),
) -> Verdict:
    """Judge a phase by gate L and, with `preservation`, by gate C (paper, eq. 2-4).

    With `further`, gate C has these checks too.
    """
    feasibility = feasibility_checks(evidence, cfg)
    kept = (*preservation_checks(evidence, cfg), *further) if preservation else ()
    checks = (*feasibility, *kept)
    failed = [check for check in checks if not check.passed]
    words = "; ".join(str(check) for check in failed or checks)
    if evidence.aborted:
        words = f"cut short, rollouts had collapsed: {words}"
    feasible = all(check.passed for check in feasibility) and not evidence.aborted
    return Verdict(
        feasible=feasible,
        preserved=all(check.passed for check in kept) if preservation else None,
        score=prod(check.ratio for check in checks),
        reason=words,
    )


def feasibility_checks(evidence: Evidence, cfg: GateCfg) -> tuple[Check, Check]:
    """Return what gate L looks at."""
    return (
        Check("episode length", evidence.length, cfg.min_length, at_least=True),
        Check("error", evidence.tracking_error, cfg.max_error, at_least=False),
    )


def preservation_checks(evidence: Evidence, cfg: GateCfg) -> tuple[Check, Check]:
    """Return what gate C looks at; thresholds are None where there is no reference."""
    error, value = evidence.reference_error, evidence.reference_return
    most, least = None, None
    if error is not None:
        most = (1.0 + cfg.error_margin) * error + cfg.error_slack
    if value is not None:
        least = value - cfg.return_margin * abs(value)
    return (
        Check("checkpoint error", evidence.checkpoint_error, most, at_least=False),
        Check("checkpoint return", evidence.checkpoint_return, least, at_least=True),
    )


def by_size(name: str, evidence: Evidence) -> dict[str, float]:
    """Return a probe's figure over all bodies, under the empty name, and by their size."""
    whole, parts = getattr(evidence, name), split_by_size(name, evidence)
    return parts if whole is None else {"": whole, **parts}


def not_worse(
    name: str, reference: Mapping[str, float], evidence: Evidence, margin: float
) -> list[Check]:
    """Return checks that an error has not grown by more than a share, size by size."""
    found = by_size(name, evidence)
    words = name.replace("_", " ")
    return [
        Check(
            f"{words}, {size} bodies" if size else words,
            found[size],
            (1.0 + margin) * known,
            at_least=False,
        )
        for size, known in reference.items()
        if size in found
    ]
