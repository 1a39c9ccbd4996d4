"""Run the kernels of the network and of instance generation on a GPU at small sizes, for the sanitizers of CUDA.

python tests/gpu/small_network.py
"""

from __future__ import annotations

import numpy as np
import torch

from ndsvrp.counter_random import key_of
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.fused_decoder import FusedDecoder
from ndsvrp.policy.graphs import low_precision
from ndsvrp.policy.inputs import static_inputs
from ndsvrp.policy.kernels import kernels_for
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.search.plane import plane
from ndsvrp.search.start import start
from ndsvrp.train.config import Source
from ndsvrp.train.data import recipe_of
from ndsvrp.train.gpu_batch import draw_on_gpu


def main() -> None:
    device, bits = torch.device("cuda"), NetworkConfig().seed_bits
    torch.backends.cuda.enable_cudnn_sdp(False)  # sanitizers report errors of libraries, too
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    kernels = kernels_for(device)
    assert kernels is not None
    network = Network(NetworkConfig()).to(device)
    for customers, rollouts in ((70, 40), (9, 3)):
        problems = generate("pcvrp", customers, count=2, seed=3)
        engine = CudaEngine()
        state = start(engine, problems, np.arange(2), 1, rounds=2)
        inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), device)
        inputs = inputs.showing(engine.view(state, on_device=True))
        seeds, uniforms = RandomNumbers.from_counter(0, 2, key_of(1), rollouts, 5, bits, device)
        with low_precision(device):
            with torch.no_grad():
                removed, _ = FusedDecoder(network, kernels.device)(inputs, seeds, uniforms)
            loss = network(inputs, removed[:, :1], seeds[:, :1]).mean()
        loss.backward()
        torch.cuda.synchronize()
        assert (removed.sort(dim=-1).values.diff(dim=-1) > 0).all()
    batch = draw_on_gpu(engine, device, recipe_of(Source(problem="vrptw"), 70), 1, 0, 3)  # clustered
    batch.upload()
    assert batch.instances.problem(2).customers == 70
    print("network passed")


if __name__ == "__main__":
    main()
