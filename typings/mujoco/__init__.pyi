"""MuJoCo's extension modules carry no type stubs: anything may be there."""

from typing import Any

def __getattr__(name: str) -> Any: ...
