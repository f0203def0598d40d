"""Settings of actors, critic and PPO; defaults are the paper's where it has any."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from horizon_rl.support.bounds import (
    HUGE,
    Amount,
    Bounded,
    Count,
    Positive,
    Share,
    Width,
    Widths,
    Within,
)
from horizon_rl.support.errors import InputError, require

Activation = Literal["gelu", "elu", "relu", "tanh"]


@dataclass(frozen=True, kw_only=True)
class AnyActorCfg(Bounded):
    """What all actors have."""

    initial_std: Annotated[float, Within(1e-6, 1e3)] = 1.2
    """Standard deviation of the action noise at the start; learned from there."""
    std_parameter: Literal["scalar", "log"] = "scalar"
    """What is learned of it: itself, or its logarithm."""
    obs_groups: tuple[str, ...] = ("actor",)
    """Groups of observations that it reads, side by side and normalised."""
    privileged_groups: tuple[str, ...] = ()
    """Groups that it encodes as they are, as the critic does: with `privileged` it is an
    oracle, which knows the instance and cannot be deployed."""
    encoder_dim: Width = 64
    """Width of the layer that encodes the privileged groups, if there are any."""
    symmetric: bool = False
    """Look at every world also in a mirror, left and right swapped, and take the mean of
    both actions. Acting and learning see twice the inputs. Of an oracle, the catalogue
    must give the mirror image of every parameter."""

    def __post_init__(self):
        super().__post_init__()
        if self.symmetric and (
            self.obs_groups != ("actor",)
            or self.privileged_groups not in ((), ("privileged",))
        ):
            raise InputError(
                "a symmetric actor reads the observations 'actor', an oracle 'privileged' "
                "too: of others the mirror image is not known; accepted: "
                "--learner.actor.no-symmetric"
            )


@dataclass(frozen=True, kw_only=True)
class TransformerCfg(AnyActorCfg):
    """A decoder-only transformer over the recent past."""

    num_layers: Annotated[int, Within(1, 64)] = 1
    """Decoder layers. Every layer looks back one window: the actor sees
    `num_layers * window` steps."""
    embedding_dim: Width = 128
    """Width of a token."""
    num_heads: Annotated[int, Within(1, 1024)] = 8
    """Attention heads; each is `embedding_dim / num_heads` wide."""
    feedforward_dim: Width = 512
    """Width inside a layer's feed-forward part."""
    window: Annotated[int, Within(1, 4096)] = 127
    """Past steps that a layer attends to, beside the current one."""
    rope_base: Annotated[float, Within(1.0, HUGE)] = 10000.0
    """Base of the rotary position embedding."""

    def __post_init__(self):
        super().__post_init__()
        if self.embedding_dim % (2 * self.num_heads):
            raise InputError(
                f"embedding_dim is {self.embedding_dim}; it must be a multiple of twice"
                f" num_heads ({self.num_heads}): rotary embeddings turn pairs"
            )

    @property
    def head_dim(self) -> int:
        """Width of an attention head."""
        return self.embedding_dim // self.num_heads

    @property
    def reach(self) -> int:
        """Past steps that can change an action."""
        return self.num_layers * self.window


@dataclass(frozen=True, kw_only=True)
class MlpCfg(AnyActorCfg):
    """An actor without memory: the ablation."""

    hidden_dims: Widths = (512, 256, 128)
    """Widths of the hidden layers."""
    activation: Activation = "gelu"
    """Between the layers."""


ActorCfg = TransformerCfg | MlpCfg


@dataclass(frozen=True, kw_only=True)
class CriticCfg(Bounded):
    """The value function, which may know the instance."""

    hidden_dims: Widths = (512, 256, 128)
    """Widths of the hidden layers."""
    encoder_dim: Width = 64
    """Width of the layer that encodes the privileged group."""
    activation: Activation = "gelu"
    """Between the layers."""
    obs_groups: tuple[str, ...] = ("critic",)
    """Groups of observations that it reads, side by side and normalised."""
    privileged_groups: tuple[str, ...] = ("privileged",)
    """Groups that it encodes as they are, without the normaliser."""


@dataclass(frozen=True, kw_only=True)
class PpoCfg(Bounded):
    """Proximal policy optimisation."""

    num_steps: Annotated[int, Within(1, 4096)] = 24
    """Steps that each environment contributes to an update."""
    num_epochs: Annotated[int, Within(1, 1000)] = 8
    """Passes over the collected steps."""
    num_minibatches: Annotated[int, Within(1, 65_536)] = 4
    """Parts into which a pass cuts them."""
    reshuffle: bool = True
    """Cut them differently in every pass; upstream cuts once."""
    learning_rate: Positive = 5e-5
    """Adam's step size at the start."""
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    """Whether the learning rate follows the measured KL divergence."""
    target_kl: Positive = 0.01
    """KL divergence per minibatch that the adaptive schedule steers to."""
    min_learning_rate: Positive = 1e-5
    """The adaptive schedule goes no lower."""
    max_learning_rate: Positive = 1e-3
    """The adaptive schedule goes no higher. Upstream's bound of 1e-2 is reached from
    5e-5 within one update."""
    final_learning_rate: Positive | None = None
    """The adaptive schedule goes no higher at the end of a run that has a budget of env
    steps; without it, `max_learning_rate` is the bound throughout. Large steps find more
    in the beginning, and blur what was found in the end."""
    slow_from: Annotated[float, Within(0.0, 0.99)] = 0.5
    """Share of those env steps from which on that bound falls, evenly."""
    gamma: Share = 0.99
    """Discount factor."""
    lam: Share = 0.95
    """Decay of generalised advantage estimation."""
    clip: Positive = 0.2
    """Range of the probability ratio, and of the value's change."""
    clip_value_loss: bool = True
    """Clip the change of the value too."""
    value_coef: Amount = 1.0
    """Weight of the value loss."""
    entropy_coef: Amount = 0.01
    """Weight of the entropy bonus."""
    final_entropy_coef: Amount | None = None
    """Its weight at the end of a run that has a budget of env steps; without it, the same
    throughout. Noise explores while ranges widen, and blurs the tracking in the end."""
    anneal_from: Annotated[float, Within(0.0, 0.99)] = 0.7
    """Share of those env steps from which on it changes, evenly."""
    max_grad_norm: Positive = 1.0
    """Gradients are scaled down to this norm, actor's and critic's apart."""
    bf16: bool = False
    """Let networks run in bfloat16 in updates; weights, losses and acting stay in single
    precision. The stored policy is computed again in bfloat16 first, so that the
    probability ratio starts at 1."""
    check_first_kl: bool = False
    """Debug: raise an error if the first minibatch of an update finds another policy
    than the one that acted, a KL divergence of 1e-6 or more; with bf16, 1e-4."""

    def __post_init__(self):
        super().__post_init__()
        lowest, highest = self.min_learning_rate, self.max_learning_rate
        require("max_learning_rate", highest, lowest)
        require("learning_rate", self.learning_rate, lowest, highest)
        if self.final_learning_rate is not None:
            require("final_learning_rate", self.final_learning_rate, lowest, highest)

    def entropy_at(self, progress: float) -> float:
        """Return the weight of the entropy bonus once a share of the run is over."""
        ends = self.entropy_coef, self.final_entropy_coef
        return _at(progress, *ends, self.anneal_from)

    def max_rate_at(self, progress: float) -> float:
        """Return the bound of the learning rate once a share of the run is over."""
        ends = self.max_learning_rate, self.final_learning_rate
        return _at(progress, *ends, self.slow_from)


def _at(progress: float, first: float, last: float | None, start: float) -> float:
    """Go evenly from `first` to `last` once the share `start` of a run is over."""
    if last is None:
        return first
    share = max(0.0, progress - start) / (1.0 - start)
    return first + share * (last - first)


@dataclass(frozen=True, kw_only=True)
class DistillCfg(Bounded):
    """How a student learns from teachers; passes and minibatches are PPO's."""

    mode: Literal["dagger", "offline"] = "dagger"
    """Who acts: the student, or the teachers, whose data do not depend on it."""
    learning_rate: Positive = 1e-3
    """Adam's step size, throughout."""
    ppo_from: Share | None = None
    """Share of the run's own env steps from which PPO takes over; without it, never."""


@dataclass(frozen=True, kw_only=True)
class GramCfg(Bounded):
    """GRAM: a policy that adapts to its instance as far as it knows it, else is robust.

    Shares are of the run's own env steps. The defaults are the authors', whose actor and
    PPO are however those of the settings.
    """

    latent_dim: Width = 8
    """Numbers that tell actor and critic about the instance; all 0 is the robust mode."""
    context_dims: Widths = (64, 64)
    """Hidden layers of the encoder of the privileged groups."""
    history: Annotated[int, Within(2, 4096)] = 16
    """Observations that the deployed policy guesses the latent from, the present one
    included."""
    history_dims: Widths = (512, 256, 128)
    """Hidden layers of the encoder of that history."""
    epinet_dims: tuple[Width, Width] = (16, 16)
    """Hidden layers of the epinet, which tells what that encoder does not know."""
    epinet_samples: Annotated[int, Within(2, 4096)] = 8
    """Epistemic indices: drawn for every minibatch, and drawn once for the policy."""
    history_rate: Positive = 1e-3
    """Adam's step size for encoder and epinet of the history."""
    history_from: Annotated[float, Within(0.01, 0.99)] = 2 / 3
    """Share from which on only these two learn."""
    calibrate_from: Annotated[float, Within(0.01, 1.0)] = 0.9
    """Share from which on nothing learns: how uncertain is usual is measured on whole
    episodes with mean actions."""
    push_speed: Amount = 1.0
    """Largest push of the adversary, m/s; it grows from 0 to `history_from`."""
    push_rate: Share = 0.05
    """Share of the steps in robust mode in which the adversary pushes."""
    adversary_dims: Widths = (512, 256, 128)
    """Hidden layers of the adversary."""
    adversary_rate: Positive = 1e-3
    """The adversary's step size at the start; it then follows its own KL divergence."""
    adversary_every: Count = 10
    """Iterations between two updates of the adversary."""

    def __post_init__(self):
        super().__post_init__()
        require("calibrate_from", self.calibrate_from, self.history_from)


@dataclass(frozen=True, kw_only=True)
class LearnerCfg:
    """Everything that learns."""

    actor: ActorCfg = field(default_factory=TransformerCfg)
    """The policy's network."""
    critic: CriticCfg = field(default_factory=CriticCfg)
    """The value network."""
    algorithm: str = "ppo"
    """What learns from rollouts: ppo, gram, or a name given to `register_algorithm`."""
    ppo: PpoCfg = field(default_factory=PpoCfg)
    """Settings of PPO."""
    distill: DistillCfg = field(default_factory=DistillCfg)
    """Method `distill`: how the policy learns from its teachers."""
    gram: GramCfg = field(default_factory=GramCfg)
    """Method `gram`: its latent, its adversary, and when it does what."""
    matmul: Literal["tf32", "float32"] = "tf32"
    """How a GPU multiplies matrices of single floats: with inputs rounded to 10 bits,
    or exactly. A CPU is always exact."""
    compile: Literal["none", "task", "update", "all"] = "none"
    """What `torch.compile` compiles on a GPU: the task's part of a step, the loss of an
    update, or both. It rounds differently."""

    def __post_init__(self):
        actor = self.actor
        is_special = actor.privileged_groups or actor.symmetric
        if self.algorithm == "gram" and (is_special or not isinstance(actor, MlpCfg)):
            raise InputError(
                "GRAM's actor is an MLP that learns about its instance from a latent; "
                "accepted: --policy mlp, --learner.actor.no-symmetric"
            )

    def compiles(self, part: Literal["task", "update"]) -> bool:
        """Tell whether a part is to be compiled."""
        return self.compile in (part, "all")
