"""Tools without knowledge of the field."""
