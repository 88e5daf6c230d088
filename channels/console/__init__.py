"""The console channel: one chat with whoever sits at the terminal, or at the other end of a pipe."""
