"""Recursive estimators: pure functions from a state and a sample to the next state."""
