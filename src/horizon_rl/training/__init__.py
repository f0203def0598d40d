"""Training: one loop over worlds, a learner and the curriculum; import from its modules."""
