"""The methods that come with the package, each in a file of its own."""

from horizon_rl.curriculum.methods.clock import Clock as Clock
from horizon_rl.curriculum.methods.horizon import Horizon as Horizon
