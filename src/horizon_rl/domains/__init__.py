"""Physical domains: parameters, groups, catalogues, and instances drawn from them."""

from horizon_rl.domains.beta import BetaLevels as BetaLevels
from horizon_rl.domains.bounds import AtBounds as AtBounds
from horizon_rl.domains.catalogue import CORE_GROUPS as CORE_GROUPS
from horizon_rl.domains.catalogue import Catalogue as Catalogue
from horizon_rl.domains.catalogue import Group as Group
from horizon_rl.domains.catalogue import Levels as Levels
from horizon_rl.domains.catalogue import Ranges as Ranges
from horizon_rl.domains.distribution import AtLevels as AtLevels
from horizon_rl.domains.distribution import Distribution as Distribution
from horizon_rl.domains.distribution import InRanges as InRanges
from horizon_rl.domains.distribution import Instances as Instances
from horizon_rl.domains.distribution import LevelDistribution as LevelDistribution
from horizon_rl.domains.distribution import middle_instance as middle_instance
from horizon_rl.domains.distribution import place as place
from horizon_rl.domains.distribution import sample as sample
from horizon_rl.domains.mixture import OneOf as OneOf
from horizon_rl.domains.parameter import Parameter as Parameter
from horizon_rl.domains.parameter import Range as Range
from horizon_rl.domains.seeds import FromSeeds as FromSeeds
from horizon_rl.domains.toml import load_catalogue as load_catalogue
from horizon_rl.domains.toml import paper_catalogue as paper_catalogue
from horizon_rl.domains.toml import parse_catalogue as parse_catalogue
from horizon_rl.domains.toml import shipped_catalogue as shipped_catalogue
