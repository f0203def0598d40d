"""Physical domains: parameters, groups, catalogues, and instances drawn from them."""

from horizon_rl.domains.catalogue import (
    CORE_GROUPS,
    Catalogue,
    Group,
    Levels,
    Ranges,
)
from horizon_rl.domains.parameter import Parameter, Range
from horizon_rl.domains.sampling import Instances, middle_instance, place, sample
from horizon_rl.domains.toml import (
    load_catalogue,
    paper_catalogue,
    parse_catalogue,
    shipped_catalogue,
)

__all__ = [
    "CORE_GROUPS",
    "Catalogue",
    "Group",
    "Instances",
    "Levels",
    "Parameter",
    "Range",
    "Ranges",
    "load_catalogue",
    "middle_instance",
    "paper_catalogue",
    "parse_catalogue",
    "place",
    "sample",
    "shipped_catalogue",
]
