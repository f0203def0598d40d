"""What several commands share."""

import json
import sys
from pathlib import Path
from typing import Any

from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue


def read_catalogue(path: Path | None) -> Catalogue:
    """Load the user's catalogue, or the paper's where none is given."""
    return load_catalogue(path) if path else paper_catalogue()


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()
