"""Slack over Socket Mode."""
