"""Alter files and inputs of every kind, read them, and look at what comes of it.

Whatever is read must be refused, said, or come to the result of the sound input. Readers
run in forked processes, a hundred mutations each, so that one that dies is noticed.
"""

import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from killing import prepare_fork
from tests.campaign.inputs import make_kinds
from tests.campaign.readers import Kind

from horizon_rl.support.errors import InputError

PATIENCE_S = 60.0
"""A reader that takes longer hangs: a sound input takes milliseconds."""
CHUNK = 100
MEMORY_MB = 600
"""More than a reader may take beyond what a sound input took."""
BAD = ("tracebacks", "silent changes", "hangs", "crashes")


class HangError(BaseException):
    pass


def seeded(name: str, seed: int) -> random.Random:
    """Return the randomness of one mutation."""
    return random.Random(f"{name}:{seed}")


def look(kind: Kind, content: bytes, sound: Any) -> str:
    """Say what a reader makes of content."""
    kind.file.write_bytes(content)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
            found = kind.read()
        except (InputError, OSError):
            return "refused"
        except HangError:
            return "hangs"
        except Exception:
            traceback.print_exc()
            return "tracebacks"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    # By its text: NaN is not equal to itself.
    if repr(found) == repr(sound):
        return "same result"
    if said:
        return "said"
    return "silent changes" if kind.sealed else "another result"


def attack(name: str, kind: Kind, seeds: range) -> tuple[Counter, float]:
    """Try mutations in a process of its own; return the outcomes and its memory, MB."""
    content = kind.file.read_bytes()
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        # Whatever happens, this process never leaves here.
        try:
            os.close(reading)
            _attack_here(name, kind, seeds, content, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        lines = told.read().splitlines()
    os.waitpid(pid, 0)
    kind.file.write_bytes(content)
    outcomes = Counter(json.loads(line)["outcome"] for line in lines)
    memory = max((json.loads(line)["mb"] for line in lines), default=0.0)
    if missing := len(seeds) - len(lines):
        print(f"{name}: died at seed {seeds[len(lines)]}", file=sys.stderr)
        outcomes["crashes"] += 1
        outcomes["not tried"] += missing - 1
    return outcomes, memory


def _attack_here(
    name: str, kind: Kind, seeds: range, content: bytes, writing: int
) -> None:
    def give_up(number: int, frame: Any) -> None:
        raise HangError

    prepare_fork()
    signal.signal(signal.SIGALRM, give_up)
    sound = kind.read()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        outcome = look(kind, kind.mutate(content, seeded(name, seed)), sound)
        if outcome in BAD:
            print(f"{name}, seed {seed}: {outcome}", file=sys.stderr, flush=True)
        mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        told = json.dumps({"outcome": outcome, "mb": mb})
        os.write(writing, f"{told}\n".encode())


def campaign(
    mutations: int, only: list[str] | None = None, each: int | None = None
) -> int:
    """Attack all kinds, or some, so often in all, or each so often; 1: something broke."""
    columns = ("refused", "said", "same result", "another result", *BAD)
    print(f"| altered | mutations | {' | '.join(columns)} | memory, MB |")
    print("|---|" + "---:|" * (len(columns) + 2))
    total, worst = Counter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        kinds = make_kinds(Path(folder))
        if unknown := set(only or ()) - kinds.keys():
            sys.exit(f"unknown: {', '.join(unknown)}; accepted: {'; '.join(kinds)}")
        shares = {name: kind.ms**-0.5 for name, kind in kinds.items()}
        began = time.monotonic()
        for name, kind in kinds.items():
            if only and name not in only:
                continue
            count = each or round(mutations * shares[name] / sum(shares.values()))
            found, peak = Counter(), 0.0
            for first in range(0, count, CHUNK):
                seeds = range(first, min(count, first + CHUNK))
                outcomes, memory = attack(name, kind, seeds)
                found, peak = found + outcomes, max(peak, memory)
            total, worst = total + found, max(worst, peak)
            _print_row(name, found, columns, peak)
        _print_row("all", total, columns, worst)
    print(f"\n{(time.monotonic() - began) / 60.0:.1f} min", file=sys.stderr)
    return int(any(total[name] for name in BAD) or worst > MEMORY_MB)


def _print_row(name: str, found: Counter, columns: tuple, memory: float) -> None:
    cells = [f"{found[column]:,}" for column in columns]
    count = f"{sum(found.values()):,}"
    print(f"| {' | '.join((name, count, *cells, f'{memory:.0f}'))} |", flush=True)
