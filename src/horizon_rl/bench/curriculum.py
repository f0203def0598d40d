"""What the curriculum core costs: decisions, journal, import."""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from horizon_rl.bench.timing import median_costs
from horizon_rl.curriculum import Evidence, Horizon
from horizon_rl.domains import paper_catalogue
from horizon_rl.runs.journal import create_curriculum, replay

GOOD = Evidence(
    length=0.95,
    tracking_error=0.2,
    checkpoint_error=0.2,
    checkpoint_return=20.0,
    reference_error=0.2,
    reference_return=20.0,
)
BAD = Evidence(length=0.4, tracking_error=0.6)


def measure_curriculum(repeats: int) -> dict[str, float]:
    """Time a run of all seven groups in which every third phase fails."""
    groups, method = paper_catalogue().names, Horizon()

    def evidence(phase: int) -> Evidence:
        return BAD if phase % 3 == 2 else GOOD

    def decide() -> int:
        state = method.start(groups)
        while state.proposal:
            state, _ = method.step(state, evidence(state.phase))
        return state.phase

    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / f"{i}.jsonl" for i in range(repeats + 1))

        def record() -> int:
            curriculum = create_curriculum(next(paths), groups, method)
            while proposal := curriculum.ask():
                curriculum.tell(evidence(proposal.phase))
            curriculum.close()
            return curriculum.state.phase

        def read() -> int:
            return len(replay(Path(folder) / "0.jsonl").entries)

        works = {
            "decision": decide,
            "decision_on_disk": record,
            "replay_per_phase": read,
        }
        costs = median_costs(works, repeats)
    figures = {f"{name}_us": 1e6 * cost for name, cost in costs.items()}
    return figures | {"import_s": _import_seconds(repeats)}


def _import_seconds(repeats: int) -> float:
    """Return what `import horizon_rl.curriculum` adds to starting Python."""
    code = (
        "import time; t = time.perf_counter(); import horizon_rl.curriculum; "
        "print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", code]
    outputs = [subprocess.check_output(command) for _ in range(repeats + 1)]
    return median(map(float, outputs[1:]))
