"""Weights for a run whose catalogue has other parameters than their own."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from horizon_rl.domains import Catalogue
from horizon_rl.physics import BODY_DESCRIPTORS

ENCODER = "critic.encoder.0.weight"
"""What weighs the privileged numbers, [width, numbers]; Adam's moments have the same layout."""


def fit_catalogue(
    tensors: Mapping[str, Tensor], theirs: Catalogue, ours: Catalogue
) -> dict[str, Tensor]:
    """Rearrange the critic's weights for the parameters of another catalogue.

    A parameter that the weights do not know gets zeros: the critic begins by ignoring
    it, and values everything as it did. The actor sees no parameters, and stays.
    """
    old, new = list(_numbers(theirs)), list(_numbers(ours))
    places = [old.index(number) if number in old else -1 for number in new]
    known = torch.tensor([place >= 0 for place in places])

    def fit(name: str, values: Tensor) -> Tensor:
        of_encoder = ENCODER in name and values.ndim == 2
        if not of_encoder or values.shape[1] != len(old) or old == new:
            return values
        # Parameters that are unknown take a column that is then wiped.
        return values[:, places] * known

    return {name: fit(name, values) for name, values in tensors.items()}


def _numbers(catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Name the privileged numbers in their order: the body, then every draw."""
    yield from ((name, 0) for name in BODY_DESCRIPTORS)
    for name, parameter in catalogue.parameters.items():
        yield from ((name, draw) for draw in range(parameter.draws))
