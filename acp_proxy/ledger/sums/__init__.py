"""Running sums, which are only incremented: reports, metrics and the page read them instead of rows."""
