"""Particle–mesh solver for the mean-field limit of Transformer attention on the sphere.

Names are loaded on first use, so that ``import meanfield`` stays light.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Attention": "meanfield.model.attention",
    "Perceptron": "meanfield.model.perceptron",
    "Model": "meanfield.model.model",
    "Measure": "meanfield.fields.measure",
    "Field": "meanfield.fields.field",
    "field": "meanfield.fields.field",
    "energy": "meanfield.fields.field",
    "moments": "meanfield.fields.field",
    "funk_hecke_eigenvalues": "meanfield.sphere.funk_hecke:eigenvalues",
    "VonMisesFisherMixture": "meanfield.sphere.von_mises_fisher",
    "ParticleFlow": "meanfield.particles.flow",
    "SpectralDensity": "meanfield.density.spectral",
    "Tracers": "meanfield.coupling.tracers",
    "SideBySide": "meanfield.coupling.side_by_side",
    "FiniteElementDensity": "meanfield.density.finite_element.flow",
    "MeshTracers": "meanfield.coupling.mesh_tracers",
    "ParticleInCell": "meanfield.coupling.particle_in_cell",
    "HandOver": "meanfield.coupling.hand_over",
    "find_clusters": "meanfield.stationary.clusters",
    "evolve": "meanfield.runtime.evolve",
    "Record": "meanfield.runtime.record",
    "read_record": "meanfield.runtime.record",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'meanfield' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
