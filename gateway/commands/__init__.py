"""What people say to the gateway and not to the model."""
