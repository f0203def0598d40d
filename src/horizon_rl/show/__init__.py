"""What people see: boards in the terminal and figures."""

from horizon_rl.show.board import bar, board
from horizon_rl.show.frontier_figure import draw_frontiers

__all__ = ["bar", "board", "draw_frontiers"]
