"""Runs on the real simulator need the extra `train`."""

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("torch")
