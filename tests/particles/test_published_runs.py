"""The particle runs published with [L, §4], from their own start to their own stop."""

import json
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.particles.flow import ParticleFlow
from meanfield.runtime.evolve import evolve
from meanfield.runtime.stopping import AnyOf, UntilSettled, UntilTime
from meanfield.sphere.geometry import circle_points, normalise
from meanfield.stationary.clusters import cluster_threshold, count_if_tight, find_clusters

RUNS = json.loads((Path(__file__).parent.parent / "data" / "published_runs.json").read_text())
# Longer ones reproduce as well, but teach nothing that these do not.
LONGEST = 2000


def name_of(run):
    words = (run["direction"], run["activation"], run["normalisation"])
    return f"d{run['ambient_dim']}-beta{run['beta']:g}-{'-'.join(words)}"


def published_start(run):
    random, count, d = np.random.default_rng(42), run["particles"], run["ambient_dim"]
    if d == 2:
        nodes = circle_points(random.uniform(0, 2 * np.pi, count))
    else:
        nodes = normalise(random.normal(size=(count, d)))
    return mf.Measure(nodes, np.full(count, 1 / count))


@pytest.mark.parametrize(
    "run", [run for run in RUNS["runs"] if run["steps"] <= LONGEST], ids=name_of
)
def test_published_run(run):
    model = mf.Model(
        mf.Attention(run["beta"], "peak", run["normalisation"]),
        mf.Perceptron(run["a"], run["omega"], activation=run["activation"]),
        run["direction"],
    )
    flow = ParticleFlow(model, published_start(run), "euler", length=0.1)
    threshold = cluster_threshold(run["beta"], run["ambient_dim"])
    rule = UntilSettled(lambda flow: count_if_tight(flow.measure, threshold))
    outcome = evolve(flow, AnyOf(rule, UntilTime(0.2 * LONGEST)))
    clusters = find_clusters(flow.measure, threshold)
    assert "clusters over 5 snapshots" in outcome.reason
    assert clusters.count == run["cluster_count"]
    np.testing.assert_allclose(clusters.masses, run["masses"], rtol=0, atol=1e-2)
    # The stop itself is the same, give or take a snapshot.
    assert abs(outcome.steps - run["steps"]) <= 10
