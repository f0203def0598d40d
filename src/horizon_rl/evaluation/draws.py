"""The draws of a suite."""

from typing import Literal

Draw = Literal["dev", "test"]
"""Which scenarios are drawn: dev to tune and compare by, test to publish, once."""
