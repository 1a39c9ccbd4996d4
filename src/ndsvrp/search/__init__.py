"""Plan and run a search: settings, start solutions, annealing, stopping, results.

Code belongs here if it decides what a search does and when it ends. Choosing the customers to remove is the task of
`ndsvrp.ruin` and `ndsvrp.policy`; changing solutions is the task of an engine.
"""
