"""Draw instances: one sampled physical world per row."""

import numpy as np

from horizon_rl.domains.catalogue import Catalogue, Ranges
from horizon_rl.support.errors import InputError, unknown

Instances = dict[str, np.ndarray]
"""Values by full parameter name: [n], or [n, draws] where a parameter has several."""


def sample(
    catalogue: Catalogue, ranges: Ranges, n: int, rng: np.random.Generator
) -> Instances:
    """Draw `n` instances uniformly from `ranges`.

    Every instance takes the same number of draws from `rng`, in the catalogue's
    order. So the first m of n instances are the instances of `sample(..., m, rng)`,
    and one seed gives the same relative position in a narrow and in a wide range,
    which is what makes two levels comparable.
    """
    parameters = catalogue.parameters
    for name in ranges:
        if name not in parameters:
            raise InputError(unknown("parameter", name, parameters))
    if missing := [name for name in parameters if name not in ranges]:
        raise InputError(f"no range given for {', '.join(missing)}")
    unit = rng.random((n, sum(p.draws for p in parameters.values())))
    instances, column = {}, 0
    for name, parameter in parameters.items():
        u = unit[:, column : column + parameter.draws]
        column += parameter.draws
        values = place(u, ranges[name].low, ranges[name].high)
        instances[name] = values[:, 0] if parameter.draws == 1 else values
    return instances


def middle_instance(catalogue: Catalogue) -> Instances:
    """Return one instance: every parameter in the middle of its baseline range."""
    return {
        name: np.full(1 if p.draws == 1 else (1, p.draws), p.baseline.middle)
        for name, p in catalogue.parameters.items()
    }


def place(
    unit: np.ndarray, low: float | np.ndarray, high: float | np.ndarray
) -> np.ndarray:
    """Stretch numbers in [0, 1) to ranges."""
    # Rounding may step past `high` by one unit in the last place.
    return np.minimum(low + unit * (high - low), high)
