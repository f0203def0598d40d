"""What people see: boards in the terminal, figures, pictures."""

from horizon_rl.show.board import bar, board
from horizon_rl.show.frontier_figure import draw_frontiers
from horizon_rl.show.robot_sheet import save_robots

__all__ = ["bar", "board", "draw_frontiers", "save_robots"]
