"""The search: improvement step, annealing, exchange, stopping, result."""
