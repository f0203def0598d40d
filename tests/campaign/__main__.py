"""Attack the package for longer than a test may take.

    python -m tests.campaign kill [--kills 1000]        processes, at random moments
    python -m tests.campaign mutate [--mutations 100000]    files and inputs

Both print a Markdown table, as in docs/reliability.md, and end with code 1 where anything
was lost. Seeds are fixed: what was found once is found again.
"""

import argparse
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
# Modules that tests share, by their own name.
sys.path[:0] = [str(TESTS / part) for part in ("", "training", "grid")]

from tests.campaign import kill, mutate  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    attacks = parser.add_subparsers(dest="attack", required=True)
    killing = attacks.add_parser("kill")
    killing.add_argument("--kills", type=int, default=1000)
    killing.add_argument("--only", choices=kill.TARGETS)
    mutating = attacks.add_parser("mutate")
    mutating.add_argument("--mutations", type=int, default=100_000, help="in all")
    mutating.add_argument("--each", type=int, help="of every kind, instead")
    mutating.add_argument("--only", nargs="+", help="some kinds of files and inputs")
    args = parser.parse_args()
    if args.attack == "kill":
        return kill.campaign(args.kills, args.only)
    return mutate.campaign(args.mutations, args.only, args.each)


if __name__ == "__main__":
    sys.exit(main())
