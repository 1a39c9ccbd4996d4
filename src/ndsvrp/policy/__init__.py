"""The policy: a network that reads a solution and selects customers to remove (sections 4.1 and 4.3 of the paper).

Code belongs here if it defines the network, its inputs, its rollouts, its kernels or its files. A `Policy` is a ruin
(`ndsvrp.ruin`). Training is in `ndsvrp.train`. This package and all that import it need the extra `policy`.
"""

from ndsvrp.extras import require

require("policy")

from ndsvrp.policy.config import NetworkConfig  # noqa: E402
from ndsvrp.policy.network import Network  # noqa: E402
from ndsvrp.policy.policy import Policy  # noqa: E402

__all__ = ["Network", "NetworkConfig", "Policy"]
