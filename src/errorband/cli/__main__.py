"""``python -m errorband.cli``."""

from errorband.cli import main

main()
