"""The exercises and formulas of a textbook chapter on dynamics, computed and set beside its numbers."""
