"""HORIZON: a recoverability-governed curriculum for physical-domain scaling."""

__version__ = "0.1.0"
