"""How good is it: checks of models, validation, statistics."""
