"""Compiled steps of the recursive estimators."""
