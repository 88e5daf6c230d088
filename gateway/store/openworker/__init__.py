"""openworker's sessions, read from its state directory."""
