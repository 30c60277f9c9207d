"""Steelyard: a robot arm weighs itself."""

__version__ = "0.1.0"
