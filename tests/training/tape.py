"""CUDA graphs acted out on the CPU: operations are recorded and done again.

A tape knows no Python, only operations on the tensors of its recording, as a graph
does. What hangs on anything else (a counter, a tensor that was replaced) shows.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from horizon_rl.support.graphs import Recorded

aten = torch.ops.aten
FORBIDDEN = {
    aten._local_scalar_dense.default: "reads a number",
    aten.is_nonzero.default: "asks for a truth value",
    aten.nonzero.default: "makes a shape out of numbers",
    aten.masked_select.default: "makes a shape out of numbers",
    aten.lift_fresh.default: "brings numbers from Python",
    aten.normal.Tensor_Tensor: "asks whether all deviations are positive",
}
"""What a GPU cannot do while it records."""
INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}


class Tape(TorchDispatchMode):
    """Records operations while it is entered; `replay` does them again."""

    def __init__(self):
        super().__init__()
        self._entries: list[tuple[Any, tuple, dict, Any]] = []
        self._written: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in FORBIDDEN:
            raise RuntimeError(f"{func} {FORBIDDEN[func]}: no graph can hold it")
        if func in INDEXING and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        ):
            raise RuntimeError(f"{func} by a mask: no graph can hold it")
        if func._schema.is_mutable:
            self._keep(args, kwargs)
        result = func(*args, **kwargs)
        self._entries.append((func, args, kwargs, result))
        return result

    @torch.no_grad()
    def undo(self) -> None:
        """Put back what was written meanwhile: a graph's recording does nothing."""
        for tensor, before in self._written.values():
            tensor.copy_(before)

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, result in self._entries:
            aliased = any(r.alias_info for r in func._schema.returns)
            if aliased and not func._schema.is_mutable:
                continue  # A view shows what is there.
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old is not new and old.numel():
                    old.detach().copy_(new)

    def _keep(self, *args: Any) -> None:
        """Copy tensors before an operation writes into one of them."""
        for tensor in tree_leaves(args):
            if isinstance(tensor, torch.Tensor):
                whole = tensor if tensor._base is None else tensor._base
                if whole.data_ptr() not in self._written:
                    copy = whole.detach().clone()
                    self._written[whole.data_ptr()] = whole.detach(), copy


class Taped(Recorded):
    """Recorded work on the CPU, with a tape for a graph."""

    num_replays = 0

    def __init__(self, work: Callable[[], object], device):
        super().__init__(work, device)
        self._records = True

    def __call__(self) -> None:
        Taped.num_replays += self._graph is not None
        super().__call__()

    def _warm_up(self) -> None:
        self._work()

    def _record(self) -> None:
        tape, state = Tape(), torch.get_rng_state()
        with tape:
            self._work()
        torch.set_rng_state(state)
        tape.undo()
        self._graph: Any = tape
