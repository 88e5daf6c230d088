"""The stores behind the ports, chosen by a URL."""

from gateway.store.opening import Store, open_store

__all__ = ["Store", "open_store"]
