"""Readers of other programs' sessions."""
