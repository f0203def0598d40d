"""Effects that a catalogue names: code of the user's own."""

from functools import cache
from typing import Any

from horizon_rl.domains import Catalogue
from horizon_rl.physics.effects import EFFECTS, Effect
from horizon_rl.support.errors import InputError
from horizon_rl.support.named_code import code_digest, find_code

NAMED = (
    "FILE.py:NAME or MODULE:NAME of a function that takes a PoolDraft and values, or of an "
    "Effect"
)


def effects_of(catalogue: Catalogue) -> dict[str, Effect]:
    """Return the package's effects and those that the catalogue itself names."""
    own = {n: p.effect for n, p in catalogue.parameters.items() if p.effect}
    return EFFECTS | {name: _load_effect(source) for name, source in own.items()}


def effect_digests(catalogue: Catalogue) -> dict[str, str]:
    """Return a hash of the code of each effect that the catalogue itself names."""
    effects_of(catalogue)  # Refuses what is not there.
    return {
        name: code_digest(parameter.effect)
        for name, parameter in catalogue.parameters.items()
        if parameter.effect
    }


@cache
def _load_effect(source: str) -> Effect:
    """Import an effect once: what it is made of may cost, and must not be made twice."""
    found: Any = find_code(source, "effect", NAMED)
    if not (isinstance(found, Effect) or callable(found)):
        raise InputError(f"'{source}' is no effect. Accepted: {NAMED}")
    return found if isinstance(found, Effect) else Effect(apply=found)
