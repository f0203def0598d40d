"""Evaluation: frozen suites, any policy, statistics, explanations, the diagnostic.

Import from its modules: `diagnostic` and `statistics` need neither torch nor MuJoCo.
"""
