"""The environment's name in Gymnasium; nothing is imported before it is made."""

import sys

ENV_ID = "HorizonVelocity-v0"


def register_env() -> None:
    """Register the environment where Gymnasium is imported and does not know it yet."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and ENV_ID not in gymnasium.registry:
        gymnasium.register(
            ENV_ID,
            entry_point="horizon_rl.api.gymnasium:HorizonGymEnv",
            vector_entry_point="horizon_rl.api.gymnasium:HorizonVectorEnv",
        )
