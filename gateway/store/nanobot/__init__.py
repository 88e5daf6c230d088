"""nanobot's sessions: what reads them, in any layout they have had, and what writes them."""
