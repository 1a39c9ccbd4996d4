"""The learned policy: which customers to take out of a solution (the paper's sections 4.1 and 4.3)."""

from ndsvrp.policy.config import NetworkConfig
from ndsvrp.policy.network import Network
from ndsvrp.policy.policy import Policy

__all__ = ["Network", "NetworkConfig", "Policy"]
