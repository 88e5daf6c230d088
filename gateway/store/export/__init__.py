"""Sessions written for other programs and for people: pure functions from a copy of a session to lines of text."""
