"""The compiled reader of numbers in text."""
