"""ndsvrp: vehicle routing by neural deconstruction search."""
