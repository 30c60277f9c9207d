"""Compiled physics of one joint at one instant, for loops that step through time."""
