"""The whole curriculum against a synthetic learner: seconds instead of GPU hours."""

from horizon_rl.rehearsal.compare import Row as Row
from horizon_rl.rehearsal.compare import compare as compare
from horizon_rl.rehearsal.run import Rehearsal as Rehearsal
from horizon_rl.rehearsal.run import RehearsalCfg as RehearsalCfg
from horizon_rl.rehearsal.run import read_context as read_context
from horizon_rl.rehearsal.summary import summarise as summarise
from horizon_rl.rehearsal.synthetic import SyntheticCfg as SyntheticCfg
from horizon_rl.rehearsal.synthetic import SyntheticPolicy as SyntheticPolicy
