"""Numbers as text: every number that people read is formatted here, and only once."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # It takes scipy, which `horizon status` must not need.
    from horizon_rl.evaluation.statistics import Difference, Estimate, Interval, Spread

NONE = "-"
UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))


def show_number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)


def show_percent(share: float | None, digits: int = 1) -> str:
    """Write a share as per cent, without the sign."""
    return NONE if share is None else f"{100.0 * share:.{digits}f}"


def show_interval(interval: "Interval", form: str = ".0f", between: str = "..") -> str:
    """Write an interval of shares as per cent."""
    low, high = (format(100.0 * x, form) for x in (interval.low, interval.high))
    return f"{low}{between}{high}"


def show_estimate(estimate: "Estimate") -> str:
    """Write a share as per cent, with its interval if it has one."""
    value, interval = show_percent(estimate.value), estimate.interval
    return f"{value} [{show_interval(interval, '.1f', ', ')}]" if interval else value


def show_difference(difference: "Difference") -> str:
    """Write a difference of shares in points, with its interval."""
    bounds = show_interval(difference.interval, "+.1f", ", ")
    return f"{100.0 * difference.value:+.1f} [{bounds}]"


def show_spread(
    spread: "Spread | None", scale: float = 1.0, digits: int | None = None
) -> str:
    """Write mean ± standard deviation; counts, without `digits`, whole where they are."""
    if spread is None:
        return NONE
    if digits is None:
        digits = 0 if scale == 1.0 and spread.seeds == 1 else 1
    mean = f"{scale * spread.mean:.{digits}f}"
    return mean if spread.sd is None else f"{mean} ± {scale * spread.sd:.{digits}f}"


def show_count(number: int) -> str:
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:,.1f} M"


def show_broken(unhealthy: int, overflow: int) -> str:
    """Say what went wrong in the simulator; nothing is an empty text."""
    parts = []
    if unhealthy:
        parts.append(f"physics broke in {show_count(unhealthy)} episodes")
    if overflow:
        parts.append(f"contacts did not fit in {show_count(overflow)} steps")
    return ", ".join(parts)


def show_duration(seconds: float) -> str:
    """Write seconds in the largest unit of which there are at least two."""
    for size, unit in UNITS:
        if seconds >= 2.0 * size:
            value = seconds / size
            return f"{value:.0f} {unit}" if unit == "s" else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s"
