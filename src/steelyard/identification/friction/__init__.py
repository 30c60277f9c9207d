"""Friction laws from points (velocity, torque of friction)."""
