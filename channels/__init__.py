"""Adapters between chat platforms and the gateway."""
