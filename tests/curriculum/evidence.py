"""Evidence for tests: a phase that passes both gates, and ways to fail them."""

from dataclasses import replace

from horizon_rl.curriculum import Evidence

GOOD = Evidence(
    length=0.95,
    tracking_error=0.2,
    checkpoint_error=0.20,
    checkpoint_return=20.0,
    reference_error=0.20,
    reference_return=20.0,
    episodes=500,
    env_steps=1000,
)
FALLS = replace(GOOD, length=0.6)
FORGETS = replace(GOOD, checkpoint_return=18.0)
