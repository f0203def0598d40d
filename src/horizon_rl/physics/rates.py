"""How often the engine steps and the policy acts."""

PHYSICS_STEPS = 4
"""Physics steps (5 ms) per control step (20 ms)."""

CONTROL_DT = 0.02
"""Control step, s."""
