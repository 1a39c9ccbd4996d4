"""Engines: what carries out deconstruction and reconstruction, on one kind of machine each."""
