"""From regressor and torque to parameters."""
