"""Delivery: what was answered arrives, in order, once."""
