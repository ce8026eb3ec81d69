"""What tests draw their examples from: points, measures, weights, rotations."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import meanfield as mf
from meanfield.model.activations import ACTIVATIONS


def between(low, high):
    """Positive numbers over orders of magnitude."""
    return st.floats(np.log(low), np.log(high)).map(lambda logarithm: float(np.exp(logarithm)))


def dimensions(largest=8):
    """Ambient dimensions."""
    return st.integers(2, largest)


def unit_rows(count, ambient_dim):
    """Points; simple examples sit on the axes, coincide or are antipodes."""
    return _reals((count, ambient_dim), 1.0).map(_on_sphere)


def measures(ambient_dim, largest=6):
    """Up to so many nodes, some perhaps without mass."""
    return st.integers(1, largest).flatmap(
        lambda count: st.builds(
            lambda nodes, weights: mf.Measure(nodes, _shares(weights)),
            unit_rows(count, ambient_dim),
            arrays.arrays(float, count, elements=st.floats(0, 1), fill=st.nothing()),
        )
    )


def perceptrons(ambient_dim, activations=tuple(ACTIVATIONS), vectors=False):
    """Up to three neurons with biases, and scalar weights or vectors ω."""

    def of_size(neurons):
        return st.builds(
            mf.Perceptron,
            _reals((neurons, ambient_dim), 1.5),
            _reals((neurons, ambient_dim) if vectors else (neurons,), 1.5),
            _reals((neurons,), 0.5),
            st.sampled_from(activations),
        )

    return st.integers(1, 3).flatmap(of_size)


def rotations(ambient_dim):
    """Orthogonal matrices, reflections among them."""
    return st.integers(0, 10_000).map(
        lambda seed: np.linalg.qr(
            np.random.default_rng(seed).normal(size=(ambient_dim, ambient_dim))
        )[0]
    )


def random_measure(count, ambient_dim, seed):
    """Independent uniform nodes, none of them among `random_points`, with random masses."""
    rng = np.random.default_rng([seed, 1])
    nodes = _on_sphere(rng.normal(size=(count, ambient_dim)))
    return mf.Measure(nodes, rng.dirichlet(np.ones(count)))


def random_points(count, ambient_dim, seed):
    """Independent uniform points."""
    return _on_sphere(np.random.default_rng(seed).normal(size=(count, ambient_dim)))


def _reals(shape, size):
    return arrays.arrays(float, shape, elements=st.floats(-size, size), fill=st.nothing())


def _on_sphere(rows):
    rows = rows.copy()
    # Rows too short to have a direction become poles.
    rows[np.linalg.norm(rows, axis=1) < 0.1] = np.eye(rows.shape[1])[-1]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _shares(weights):
    total = weights.sum()
    return weights / total if total > 1e-3 else np.full(len(weights), 1 / len(weights))
