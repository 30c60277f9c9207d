"""ROS 2 nodes around the Python package steelyard."""
