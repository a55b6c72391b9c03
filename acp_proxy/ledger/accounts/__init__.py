"""The accounts behind budgets: the spend and holds of each account, and the decision on a turn."""
