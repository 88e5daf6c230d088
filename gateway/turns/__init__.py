"""Turns: what comes in, who works it, and the rounds of the model."""
