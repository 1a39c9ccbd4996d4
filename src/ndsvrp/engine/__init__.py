"""Engines hold chains of solutions and change them: on a CPU (the compiled core) or on a GPU (CUDA kernels).

Code belongs here if it starts, improves, evaluates, exchanges or exports solutions, or converts problems to ticks and
uploads them. Search and training use engines through the protocols of `base.py` and never see native memory.
"""
