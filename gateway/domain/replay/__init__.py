"""What of a session the model is sent: pure functions from stored rows to a legal, bounded, stable history."""
