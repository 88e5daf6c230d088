"""The words and decisions of the gateway: plain values and pure functions, standard library only."""
