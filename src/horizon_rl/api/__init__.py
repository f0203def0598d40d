"""The package from Python, on numpy arrays, and adapters to other libraries.

What a script needs is `import horizon_rl as hz`; `gymnasium` and `sb3` are imported by
their own names.
"""
