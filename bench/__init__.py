"""Measurements: each beside the bare floor of the same work, in the same run."""
