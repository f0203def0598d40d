"""Weights for a run whose catalogue has other parameters than their own."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import pad

from horizon_rl.domains import Catalogue
from horizon_rl.physics import privileged_numbers
from horizon_rl.support.errors import InputError

ENCODER = "encoder.0.weight"
"""What weighs the privileged numbers, [width, numbers], in the critic and in an oracle;
Adam's moments have the same layout."""
CONTEXT = "context.mlp.0.weight"
"""What weighs them in GRAM's context, which normalises them too."""


def fit_catalogue(
    tensors: Mapping[str, Tensor], theirs: Catalogue, ours: Catalogue
) -> dict[str, Tensor]:
    """Rearrange encoders' weights for the parameters of another catalogue.

    A parameter that the weights do not know gets zeros: the critic begins by ignoring
    it, and values everything as it did. An actor that sees no parameters stays. GRAM's
    context is refused.
    """
    old, new = list(privileged_numbers(theirs)), list(privileged_numbers(ours))
    if CONTEXT in tensors and old != new:
        raise InputError("its context encodes the parameters of another catalogue")
    places = [old.index(number) if number in old else -1 for number in new]
    known = torch.tensor([place >= 0 for place in places])

    def fit(name: str, values: Tensor) -> Tensor:
        of_encoder = ENCODER in name and values.ndim == 2
        if not of_encoder or values.shape[1] != len(old) or old == new:
            return values
        # Parameters that are unknown take a column that is then wiped.
        return values[:, places] * known

    return {name: fit(name, values) for name, values in tensors.items()}


def let_see(
    tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Give the weights of a policy that sees no parameters to an oracle.

    What the oracle's encoder says gets zeros in the layer that reads it: it begins by
    acting as the policy did.

    Args:
        tensors: A learner's state, see `state_tensors`; as it is if it is an oracle's.
        own: The state of the learner that takes it, whose encoder is fresh.
    """
    encoder = "actor.encoder."
    if not any(name.startswith(encoder) for name in own.keys() - tensors.keys()):
        return dict(tensors)
    with_moments = any(name.startswith("adam.") for name in tensors)
    seen = dict(tensors)
    for name, values in own.items():
        if encoder in name and (with_moments or name.startswith(encoder)):
            seen[name] = values
        elif "actor." in name and name in tensors and values.ndim == 2:
            blind = values.shape[1] - tensors[name].shape[1]
            seen[name] = pad(tensors[name], (0, max(blind, 0)))
    return seen


def let_adapt(
    tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Give the weights of a policy that has no latent to a learner of GRAM.

    The latent gets zeros in the layers that read it: the actor begins by acting as the
    policy did, in both modes. The critic keeps what it knows of observations, but not of
    parameters, which its own encoder told it. The optimiser is a fresh one.

    Args:
        tensors: A learner's state, see `state_tensors`; as it is if it is GRAM's, or an
            oracle's, which does not fit.
        own: The state of the learner that takes it.
    """
    first = "actor.mlp.0.weight"
    if any(name.startswith("actor.encoder.") for name in tensors):
        return dict(tensors)
    if CONTEXT not in own.keys() - tensors.keys():
        return dict(tensors)
    if first not in tensors:
        return dict(tensors)
    latent = own[first].shape[1] - tensors[first].shape[1]
    left = "critic.encoder.", "adam."
    # What else has no place stays, to be refused by its name.
    fitted = {k: v for k, v in tensors.items() if not k.startswith(left)}
    for name, values in own.items():
        found = tensors.get(name, values)
        if name in tensors and name.endswith(".mlp.0.weight"):
            found = pad(found[:, : values.shape[1] - latent], (0, latent))
        if not name.startswith("adam."):
            fitted[name] = found
    return fitted
