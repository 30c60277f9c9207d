"""A whole study from one YAML file: `steelyard run` and `steelyard demo`."""
