"""The seams of the gateway: what the services need of stores, channels, models and the clock."""
