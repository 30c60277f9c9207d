"""`python -m steelyard` is the command `steelyard`."""

from .cli.main import main

main()
