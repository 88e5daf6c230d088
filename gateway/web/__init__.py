"""The HTTP surface: liveness, readiness, and the addresses that platforms call."""
