"""Training by several processes at once, started by `torchrun`.

Each process is a *rank* with its own worlds and, where there are GPUs, its own GPU. All
hold the same weights and the same curriculum: gradients are averaged before they change
one. Rank 0 leads: it alone reads, writes and prints.

`Ranks` is what the rest of the code sees. The base class is the one-rank case, in which
there is nothing to do; `join` gives the other kind where torchrun started several.
"""

import atexit
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from horizon_rl.support.errors import InputError, RunError

T = TypeVar("T")

GRACE_S = 2.0
"""Wait of a rank other than 0 before it reports its failure: where all fail alike, rank 0
reports it and torchrun ends the others before they repeat it."""
PATIENCE_S = 10.0
"""Wait of a rank that lost another one, which has reported why and ends them all."""


class Ranks:
    """All ranks as one of them sees them; here it is the only one."""

    rank = 0
    """Number of this rank."""
    size = 1
    """Number of ranks, on all machines."""
    num_threads = 0
    """Threads that the physics of this rank may use; 0: one per core."""

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def once(self, work: Callable[[], T]) -> T:
        """Do or decide something on rank 0; the others wait for its result."""
        return work()

    def gather(self, value: T) -> list[T]:
        """Return every rank's value, in their order."""
        return [value]

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor by its mean over the ranks, the same to the bit on all."""

    def moments(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of all ranks' values together."""
        return values.mean(), values.std()

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors by those of rank 0."""

    def check_same(self, tensors: Mapping[str, Tensor]) -> None:
        """Raise a RunError on all ranks if a tensor is not the same on all, to the bit."""


ALONE = Ranks()


class JoinedRanks(Ranks):
    """A rank among others, in torch's default process group.

    Objects go over the CPU: waiting for a decision is not waiting for a GPU.
    """

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        on_this_machine = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.num_threads = max(1, (os.cpu_count() or 1) // on_this_machine)

    def once(self, work: Callable[[], T]) -> T:
        box: list[Any] = [work() if self.leads else None]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def average(self, tensor: Tensor) -> None:
        dist.all_reduce(tensor)
        tensor /= self.size

    def moments(self, values: Tensor) -> tuple[Tensor, Tensor]:
        mean = values.mean()
        self.average(mean)
        squares = (values - mean).square().sum()
        dist.all_reduce(squares)
        return mean, (squares / (self.size * values.numel() - 1)).sqrt()

    def share(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            dist.broadcast(tensor, src=0)

    def check_same(self, tensors: Mapping[str, Tensor]) -> None:
        def checksum(tensor: Tensor) -> str:
            data = tensor.detach().cpu().contiguous().numpy()
            return hashlib.sha256(data.tobytes()).hexdigest()

        all_sums = self.gather({name: checksum(t) for name, t in tensors.items()})
        for rank, sums in enumerate(all_sums):
            for name, found in sums.items():
                if found != all_sums[0].get(name):
                    raise RunError(
                        f"rank {rank} no longer agrees with rank 0: '{name}' differs."
                        " The last checkpoint is sound; please report this"
                    )


@contextmanager
def join(device: str) -> Iterator[Ranks]:
    """Train with the other ranks, if torchrun started several; all leave together.

    From then on, ranks other than 0 print nothing and leave Ctrl-C to rank 0.

    Args:
        device: As the user named it; `cuda` will be the GPU of this rank's own number.
    """
    if not dist.is_torchelastic_launched() or os.environ.get("WORLD_SIZE") == "1":
        yield ALONE
        return
    on_gpu = _take_gpu(device, int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
    atexit.register(_end_at_once)
    ranks = JoinedRanks()
    if not ranks.leads:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout = open(os.devnull, "w")
    try:
        yield ranks
        ranks.gather(None)
    except Exception as error:
        _explain(error, ranks.rank)
        raise
    dist.destroy_process_group()


def _take_gpu(device: str, number: int) -> bool:
    """Make the GPU of that number torch's current one; tell whether there are any."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(
            f"device '{device}': of several ranks each takes the GPU of its own number."
            " Accepted: auto, cpu, cuda"
        )
    if device == "cpu" or not torch.cuda.is_available():
        return False
    if number >= torch.cuda.device_count():
        raise InputError(
            f"rank {number} of this machine has no GPU of its own: there are "
            f"{torch.cuda.device_count()}. Start fewer ranks, or take device 'cpu'"
        )
    torch.cuda.set_device(number)
    return True


def _explain(error: Exception, rank: int) -> None:
    """Wait for the rank that knows the cause to report it, then name this one's error."""
    # Of a lost connection gloo has no error type of its own.
    is_gloo = isinstance(error, RuntimeError) and "gloo" in str(error)
    if is_gloo or isinstance(error, dist.DistError):
        time.sleep(PATIENCE_S)
        reason = str(error).splitlines()[0]
        raise RunError(f"rank {rank} lost touch with the others: {reason}") from error
    if rank == 0:
        return
    time.sleep(GRACE_S)
    if isinstance(error, InputError | RunError):
        raise type(error)(f"rank {rank}: {error}") from error


def _end_at_once() -> None:
    """End a process that leaves its group because of an error.

    Otherwise the group's destructor might wait for ranks that wait for this one; and
    only when a process has ended does torchrun end the others.
    """
    if dist.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
