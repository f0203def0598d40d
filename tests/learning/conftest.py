"""What the learning tests share."""

from importlib.util import find_spec

import pytest

MISSING = [name for name in ("torch", "rsl_rl", "onnx") if find_spec(name) is None]
if MISSING:  # The base install cannot learn.
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header():
    if MISSING:
        return f"learning tests left out: {', '.join(MISSING)} not installed"


@pytest.fixture(autouse=True)
def one_thread():
    """Nets this small gain nothing from a second thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
