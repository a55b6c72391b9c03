"""Spend as rows of FOCUS, the FinOps Open Cost and Usage Specification, for chargeback.

A row is what one user, team, project, agent and model spent on one day of a time zone, from one source of figures in
one currency. Columns that begin with `x_` are our own, as FOCUS allows.
"""
