"""What budgets stand on: what each account has spent, what is held on it, and who may go on."""
