"""Trunkline's gateway: sessions, turns, replay and delivery behind chat channels."""
