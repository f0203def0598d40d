"""The share of scenarios in which no policy that walks can succeed."""

from horizon_rl.evaluation import momentum, statics
from horizon_rl.evaluation.array_cache import ArrayCache, make_key
from horizon_rl.evaluation.suite import FrozenColumn
from horizon_rl.support.records import encode
from horizon_rl.task import SuccessCfg


def impossible_share(
    column: FrozenColumn, success: SuccessCfg, n: int, cache: ArrayCache
) -> float:
    """Return the share of a column's first n scenarios that is impossible."""
    key = make_key(kind="impossible", column=column.digest, success=encode(success))
    kept = cache.read(key, ["impossible"])
    if kept is None or len(kept["impossible"]) < n:
        scenarios = column.scenarios(n)
        by_momentum = momentum.impossible(scenarios, column.task, success)
        kept = {"impossible": statics.impossible(scenarios.pool) | by_momentum}
        cache.write(key, kept)
    return float(kept["impossible"][:n].mean())
