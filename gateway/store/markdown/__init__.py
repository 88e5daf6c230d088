"""Sessions as Markdown, for people to read: pure functions from a copy of a session to lines of text."""
