"""The tools a session is offered."""
