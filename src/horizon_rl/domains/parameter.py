"""A physical quantity, and the ranges the curriculum moves it between."""

from dataclasses import dataclass
from typing import Annotated

from horizon_rl.support.bounds import HUGE, Bounded, Within
from horizon_rl.support.errors import InputError

Power = Annotated[float, Within(-10.0, 10.0)]
Place = Annotated[int, Within(-1024, 1024)]
"""Number of a draw, from 1; below 0, of one that changes sign."""


@dataclass(frozen=True)
class Range:
    """A closed interval of one quantity; `Range(x, x)` is the exact value x."""

    low: float
    high: float

    def __post_init__(self):
        if not -HUGE <= self.low <= self.high <= HUGE:
            raise InputError(f"{self}: needs two numbers up to {HUGE:g}, smaller first")

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2.0

    def contains(self, other: "Range") -> bool:
        return self.low <= other.low and other.high <= self.high

    def toward(self, other: "Range", level: float) -> "Range":
        """Interpolate both ends linearly: level 0 is `self`, level 1 is `other`."""
        return Range(
            _between(self.low, other.low, level), _between(self.high, other.high, level)
        )


def _between(a: float, b: float, t: float) -> float:
    """Interpolate from a to b so that t = 0 and t = 1 give them to the bit."""
    x = (1.0 - t) * a + t * b
    # Rounding must not carry a range past its limit.
    return min(max(x, min(a, b)), max(a, b))


@dataclass(frozen=True, kw_only=True)
class Parameter(Bounded):
    """One physical quantity: near-nominal `baseline`, and `limit`, the search region."""

    name: str
    baseline: Range
    limit: Range
    unit: str = ""
    draws: Annotated[int, Within(1, 1024)] = 1
    """Independent draws per instance: 3 for one per axis, 12 for one per joint."""
    mass_power: Power = 0.0
    """How the quantity grows with a body's mass, the reference body's being 1 ..."""
    length_power: Power = 0.0
    """... and with its leg length, so that a level means the same difficulty."""
    about: str = ""
    """One line for a reader: what the quantity is and where it acts."""
    effect: str = ""
    """What applies it, FILE.py:NAME or MODULE:NAME; empty: the package itself does."""
    mirror: Annotated[tuple[Place, ...], Within(0, 1024)] | None = None
    """Which draw each one is where left and right are swapped, with a minus if it changes
    sign: [1, -2, 3] is a force. Repeated for further draws; empty: there is no such
    image. Without it a single draw that is never below 0, and widens, stays; of others it is unknown."""

    def __post_init__(self):
        super().__post_init__()
        if not self.limit.contains(self.baseline):
            raise InputError(
                f"limit {self.limit} does not contain baseline {self.baseline}: "
                "a level only ever widens the range"
            )
        places = self.mirror or ()
        back = {abs(place): n if place > 0 else -n for n, place in enumerate(places, 1)}
        if back != dict(enumerate(places, 1)):
            raise InputError(
                f"mirror {list(places)}: seen in it twice, every draw must be itself; "
                "accepted are such as [1, -2, 3] or [2, 1]"
            )

    def range_at(self, level: float) -> Range:
        return self.baseline.toward(self.limit, level)

    def scale_for(self, mass: float, length: float) -> float:
        """Return the factor for a body of `mass` and `length` reference bodies."""
        return mass**self.mass_power * length**self.length_power

    def coverage_at(self, level: float) -> float:
        """Width at `level` as a share of the limit's width."""
        # A limit without width is a constant, which any range covers whole.
        if self.limit.width == 0.0:
            return 1.0
        return self.range_at(level).width / self.limit.width
