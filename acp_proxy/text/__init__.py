"""Text for people: figures, times, tables, and output that a terminal can show."""
