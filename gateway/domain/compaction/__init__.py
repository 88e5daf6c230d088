"""Shortening a long session for the model: when, from where, what is kept of the rest. Policy only, without effects.

`CompactionState` is at hand here for those that only move it; everything else is imported from its own module.
"""

from gateway.domain.compaction.state import CompactionState

__all__ = ["CompactionState"]
