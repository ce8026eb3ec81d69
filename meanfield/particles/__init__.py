"""Lagrangian clouds of particles and how they move."""
