"""Settings shared by all tests."""

from hypothesis import settings

# The same examples every time: a red build can be repeated anywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
