"""Stable-Baselines3's PPO learns to walk, measured as our policies are.

    pip install -c constraints.txt -e '.[sb3]'
    python examples/sb3_ppo.py

To walk it takes some 7 million env steps, which took 24 minutes on two shared cores.

Any library that takes a Gymnasium vector environment can be compared like this: train in
`HorizonVelocity-v0`, hand over a function of observations, evaluate.
"""

import argparse
from dataclasses import replace

from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

import horizon_rl as hz
from horizon_rl.api.sb3 import HorizonSb3Env, as_function


def train(steps: int, num_envs: int = 256, seed: int = 0) -> tuple[PPO, VecNormalize]:
    """Train on Go2 at the baseline, with episodes of six seconds."""
    task = replace(hz.TaskCfg(), episode_s=6.0)
    env = VecNormalize(HorizonSb3Env(num_envs, task=task), norm_reward=False)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=24,
        batch_size=num_envs * 6,
        n_epochs=5,
        learning_rate=1e-3,
        target_kl=0.02,
        ent_coef=0.002,
        policy_kwargs={
            "net_arch": [128, 128],
            "activation_fn": nn.ELU,
            "log_std_init": -0.7,
        },
        seed=seed,
        device="cpu",
    )
    model.learn(steps)
    return model, env


def main() -> dict[str, float]:
    parser = argparse.ArgumentParser(description="SB3 PPO on Go2")
    parser.add_argument("--steps", type=int, default=7_000_000)
    parser.add_argument("--episodes", type=int, default=64)
    args = parser.parse_args()
    model, env = train(args.steps)
    print(f"{model.num_timesteps:,} env steps")
    errors = {}
    for name, policy in (("SB3 PPO", as_function(model, env)), ("standing", "stand")):
        result = hz.evaluate(
            policy, columns=["none"], severity=0.0, episodes=args.episodes
        )
        column = result.record["columns"]["none"]
        errors[name] = column["tracking_error"]
        print(
            f"{name}: success {column['success']:.0%}, length {column['length']:.0%}, "
            f"tracking error {column['tracking_error']:.2f} m/s"
        )
    return errors


if __name__ == "__main__":
    main()
