"""Running sums that are only ever added to: what reports, metrics and the page read in place of rows."""
