"""The compiled closed loop."""
