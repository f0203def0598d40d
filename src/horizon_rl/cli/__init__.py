"""The `horizon` command: parsing and wiring only.

Every command is a module here with a dataclass, whose fields are its flags, and a
function `run`. Only the module of the command that is run gets imported: `horizon
domains` must not wait for torch. Nor must any `--help`: commands that need torch or
scipy have their flags in a module of their own.
"""

import os
import sys
import warnings
from functools import partial
from importlib import import_module
from io import TextIOWrapper

from horizon_rl import __version__
from horizon_rl.cli.common import Terminal
from horizon_rl.cli.parse import parse
from horizon_rl.cli.printing import complain, mute
from horizon_rl.cli.stopping import (
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    Terminated,
    stoppable,
)
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.errors import InputError, RunError, unknown
from horizon_rl.support.printable import printable

# Before torch is imported. Its threads wait for each other by spinning, which on a busy
# machine keeps the very thread they wait for off the core: an update took 20 times as
# long beside another process, and no longer than alone with this.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

COMMANDS = {
    "rehearse": ("RehearseCmd", "the curriculum against a synthetic learner"),
    "train": ("TrainCmd", "a policy, its physics widened while it copes"),
    "grid": ("GridCmd", "a study's runs side by side, on a machine or a cluster"),
    "status": ("StatusCmd", "how a run is doing, from its files alone"),
    "runs": ("RunsCmd", "the runs at hand, their checkpoints and scores"),
    "verify": ("VerifyCmd", "whether a run's files are what was written"),
    "diagnose": ("DiagnoseCmd", "whether the gates of past runs predicted progress"),
    "study": ("StudyCmd", "training runs side by side, and their verdicts again"),
    "core": ("CoreCmd", "which groups make a compact core, from a grid of pairs"),
    "pages": ("PagesCmd", "tables of Markdown pages, from records of grids"),
    "report": ("ReportCmd", "runs as one page to keep and share"),
    "watch": ("WatchCmd", "the same page, live while a run trains"),
    "eval": ("EvalCmd", "policies on frozen, out-of-distribution physics"),
    "export": ("ExportCmd", "a policy as one ONNX file, for a robot"),
    "play": ("PlayCmd", "a policy in the browser, in a window, or on film"),
    "models": ("ModelsCmd", "the policies that come with the package"),
    "domains": ("DomainsCmd", "what can be widened, and how far a level goes"),
    "robots": ("RobotsCmd", "the bodies at hand, as numbers and as a picture"),
    "cache": ("CacheCmd", "results of evaluations on disk, and which may go"),
    "bench": ("BenchCmd", "what the parts cost on this machine"),
    "completion": ("CompletionCmd", "a script that completes commands in a shell"),
}
HEAVY = {
    **{name: f"{name}_flags" for name in ("train", "grid", "eval", "export", "play")},
    **dict.fromkeys(("study", "core", "report", "watch"), "run_flags"),
}
"""Where the flags of commands are that take seconds to import."""


def main(args: list[str] | None = None) -> int:
    """Run the command line `args`; returns the exit code, 2 for bad input."""
    args = sys.argv[1:] if args is None else args
    warnings.showwarning = partial(_show_warning, set())
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is None:  # Closed, as by >&-.
            setattr(sys, name, open(os.devnull, "w", errors="replace"))
        elif isinstance(stream, TextIOWrapper):
            # A terminal without Unicode gets question marks, not a traceback.
            stream.reconfigure(errors="replace")
    try:
        with stoppable():
            code = _dispatch(args)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        mute(sys.stdout)
        return 0
    except (InputError, RunError, OSError) as error:
        # An OSError is a full disk, a directory taken away: the last commit is intact.
        complain(f"horizon: {error}")
        return 2 if isinstance(error, InputError) else 1
    except (RuntimeError, MemoryError) as error:
        # By its words: torch may not even be installed.
        on_gpu = type(error).__name__ == "OutOfMemoryError"
        on_cpu = isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
        if not (on_gpu or on_cpu):
            raise
        where = "of the GPU is full: take fewer worlds, or --device cpu"
        simulates = args[0] in ("train", "eval", "diagnose", "bench")
        hint = ": take fewer worlds, or smaller networks" if simulates else ""
        where = where if on_gpu else f"is full{hint}"
        complain(f"horizon: the memory {where}")
        return 1
    except KeyboardInterrupt as stop:
        terminated = isinstance(stop, Terminated)
        complain(f"horizon: {'terminated' if terminated else 'interrupted'}")
        return EXIT_TERMINATED if terminated else EXIT_INTERRUPTED


def _dispatch(args: list[str]) -> int:
    name = args[0] if args else "--help"
    if name in ("-h", "--help"):
        _print_help()
        return 0
    if name == "--version":
        print(f"horizon-rl {__version__}")
        return 0
    if name not in COMMANDS:
        raise InputError(unknown("command", name, COMMANDS))
    flags = import_module(f"horizon_rl.cli.{HEAVY.get(name, name)}")
    cmd = parse(name, flags, getattr(flags, COMMANDS[name][0]), args[1:])
    if cmd is not None:
        import_module(f"horizon_rl.cli.{name}").run(cmd)
    return 0


def _print_help() -> None:
    rows = ((Cell(f"  {name}", "bold"), about) for name, (_, about) in COMMANDS.items())
    console = Terminal()
    console.print("usage: horizon COMMAND [OPTIONS]\n")
    console.print("Recoverability-governed curricula for legged robots.\n")
    console.print_table(Table("", ("", ""), tuple(rows), align="l"))
    console.print("horizon COMMAND --help explains a command.")


def _show_warning(said, message, category, filename, lineno, file=None, line=None):
    """Print a warning once: several parts of a command may read the same file."""
    text = printable(str(message))
    if text not in said:
        said.add(text)
        complain(f"horizon: warning: {text}")
