"""Deployment: a policy as one file that says of itself all that a robot needs."""

from horizon_rl.deploy.export import Exported, export_policy, standalone_mjcf
from horizon_rl.deploy.metadata import Metadata

__all__ = ["Exported", "Metadata", "export_policy", "standalone_mjcf"]
