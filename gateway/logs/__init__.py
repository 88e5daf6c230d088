"""Logs: every library's records and ours in one stream, with no secret in it."""
