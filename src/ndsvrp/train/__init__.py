"""Training of the deconstruction policy: Algorithm 1 of the paper, and the recipe that makes it stable."""
