"""Train the policy: Algorithm 1 of the paper, with a recipe that makes it stable.

Code belongs here if only training needs it: configurations, batches of instances, rewards and loss, validation,
checkpoints, logs. The network is in `ndsvrp.policy`, the generators are in `ndsvrp.generate`.
"""
