"""Events: what the gateway does, told as it happens."""
