"""A figure of where a policy breaks: success against the value of each parameter."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from horizon_rl.show.plotting import new_figure

if TYPE_CHECKING:  # It takes the simulator's libraries.
    from horizon_rl.evaluation.explain import Factor

COLUMNS = 3
DOTS, BAND = "#1f5fa8", "#9dbfe0"


def failure_figure(factors: "Sequence[Factor]", title: str = "") -> Any:
    """Draw success by bins of each factor, with its 95 % interval."""
    columns = min(len(factors), COLUMNS)
    rows = -(-len(factors) // columns)
    # Wide enough for the title where there is only one.
    size = max(3.4 * columns, 5.0), 2.5 * rows + 0.6
    figure, axes = new_figure(*size, rows, columns, sharey=True)
    for ax, factor in zip(axes, factors, strict=False):
        middles = [(b.low + b.high) / 2.0 for b in factor.bins]
        low = [100.0 * b.interval.low for b in factor.bins]
        high = [100.0 * b.interval.high for b in factor.bins]
        ax.fill_between(middles, low, high, color=BAND, alpha=0.6, linewidth=0)
        share = [100.0 * b.success for b in factor.bins]
        ax.plot(middles, share, "o-", color=DOTS, markersize=4)
        unit = f", {factor.unit}" if factor.unit else ""
        ax.set(xlabel=f"{factor.name}{unit}", ylim=(-3, 103))
        ax.grid(alpha=0.3)
    for ax in axes[len(factors) :]:
        ax.set_visible(False)
    for ax in axes[::columns]:
        ax.set_ylabel("success, %")
    if title:
        figure.suptitle(title, x=0.01, ha="left", wrap=True)
    return figure
