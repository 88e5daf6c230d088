"""Our own JSON lines: what writes sessions out whole, and what reads them back."""
