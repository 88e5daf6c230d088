"""Wake-ups and the clock of one process."""
