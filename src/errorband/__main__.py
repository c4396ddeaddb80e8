"""``python -m errorband``: the command-line tool."""

from errorband.cli import main

main()
