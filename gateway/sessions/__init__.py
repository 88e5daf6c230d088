"""The session manager."""

from gateway.sessions.manager import SessionManager

__all__ = ["SessionManager"]
