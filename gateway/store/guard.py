"""The first statement of every write for a turn or a lane: is its lease still held?"""

from __future__ import annotations

from gateway.domain.errors import LeaseLost
from gateway.ports.leases import Lease
from gateway.store.database import Transaction


def check_lease(tx: Transaction, lease: Lease, expected_name: str) -> None:
    """Raise `LeaseLost` unless `lease` is the current holding of `expected_name`.

    An expired lease that nobody took since still counts: had anybody acted in between, the token would have grown.
    """
    if lease.name != expected_name:
        raise LeaseLost(expected_name)
    held = tx.one("SELECT token, expires_at FROM leases WHERE name = ?", lease.name)
    if held is None or held["token"] != lease.token or held["expires_at"] == 0:
        raise LeaseLost(lease.name)
