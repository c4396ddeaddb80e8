"""Tables for the command-line tool: read them, write them, and turn them into numeric matrices."""

from errorband.tables.encode import Encoded, TableEncoder
from errorband.tables.errors import TableError
from errorband.tables.read import read_table, require_column
from errorband.tables.write import write_table

__all__ = ["Encoded", "TableEncoder", "TableError", "read_table", "require_column", "write_table"]
