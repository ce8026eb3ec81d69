"""Geometry and harmonics of the unit sphere S^{d-1}."""
