"""Counts tokens offline, with a vocabulary that is shipped with the code."""
