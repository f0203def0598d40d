"""What a session of `horizon play` costs: a control step, a change, a drawn frame.

python benchmarks/play.py [POLICY]
"""

import sys
import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

from horizon_rl.policies.load import load_policy
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from horizon_rl.viewer.studio import Studio, side_view

WIDTH, HEIGHT = 960, 540
REPEATS = 100


def measure(name: str, work: Callable[[int], object]) -> None:
    """Print the median of many calls, after a few that warm up."""
    times = []
    for number in range(REPEATS + 5):
        began = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - began)
    print(f"{name:42} {1e3 * np.median(times[5:]):6.2f} ms")


def main(policy: str = "base") -> None:
    session = Session(load_policy(policy), free_setup("go2"))
    session.drive(np.array((0.8, 0.0, 0.0)))
    light, loaded = (
        session.body.with_intervention("payload-3kg", with_it)
        for with_it in (False, True)
    )
    masses = np.linspace(0.9, 1.1, REPEATS + 5)
    measure(f"control step with {policy}", lambda n: session.step())
    measure(
        "change of a parameter",
        lambda n: session.set_values({"mass.scale": masses[n : n + 1]}),
    )
    measure(
        "change of the body", lambda n: session.change_body(loaded if n % 2 else light)
    )
    camera = side_view(session.robot, session.place, WIDTH / HEIGHT)
    with closing(Studio(session.robot, WIDTH, HEIGHT)) as studio:
        measure(
            f"frame of {WIDTH}x{HEIGHT}, drawing alone",
            lambda n: studio.draw([session.state], camera),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
