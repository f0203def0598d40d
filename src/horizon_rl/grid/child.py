"""A `horizon` command that its parent stops, and that does not outlive it.

    python -m horizon_rl.grid.child train --preset smoke ...

is `horizon train --preset smoke ...`, but it listens: a line on its standard input is a
Ctrl-C, and where that input ends its parent is gone (killed, or on a node that died) and
it ends at once. So no run is left behind that keeps its journal locked.
"""

import os
import runpy
import signal
import sys
from threading import Thread


def listen() -> None:
    for _ in sys.stdin:
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    # A worker of Ray starts us with Ctrl-C blocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Thread(target=listen, daemon=True).start()
    runpy.run_module("horizon_rl", run_name="__main__", alter_sys=True)
