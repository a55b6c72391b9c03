"""Text for people: figures, times, tables, and what a terminal can show."""
