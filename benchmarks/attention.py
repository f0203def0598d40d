"""Ways to attend on a GPU, at the sizes of the paper's policy.

python benchmarks/attention.py
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from horizon_rl.learning.attention import attend


def fused(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    return scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def fused_bf16(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    narrow = (x.bfloat16() for x in (queries, keys, values))
    return fused(*narrow, mask).float()


WAYS = {
    "fused": fused,
    "fused, bf16": fused_bf16,
    "products": attend,
    "products, compiled": torch.compile(attend, dynamic=False),
}


def milliseconds(work: Callable[[], object], repeats: int = 20) -> float:
    for _ in range(3):
        work()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        work()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / repeats


def measure(title: str, num_worlds: int, num_queries: int, num_keys: int) -> None:
    def draw(length: int) -> Tensor:
        shape = (num_worlds, 8, length, 16)
        return torch.randn(shape, device="cuda", requires_grad=num_queries > 1)

    queries, keys, values = draw(num_queries), draw(num_keys), draw(num_keys)
    mask = torch.rand((num_worlds, 1, num_queries, num_keys), device="cuda") > 0.1
    for name, way in WAYS.items():

        def work(way=way) -> None:
            seen = way(queries, keys, values, mask)
            if num_queries > 1:
                seen.sum().backward()

        print(f"{title}, {num_worlds} worlds, {name}: {milliseconds(work):.2f} ms")


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    for n in (4096, 16384):
        measure("acting", n, 1, 128)
    for n in (1024, 4096):
        measure("learning, back and forth", n, 24, 151)
