"""Benchmarks: solvers side by side on sets of instances, rows that can be trusted and resumed."""
