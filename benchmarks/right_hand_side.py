"""One right-hand side, measured: the velocities of N particles, summed fast, directly and densely.

Prints one line of JSON. `benchmarks/run.py` starts this program once for each row of its
tables, because a process knows only its own largest memory. By hand:

    python benchmarks/right_hand_side.py --dimension 3 --beta 50 --particles 1000 --dense
    mpiexec -n 2 python benchmarks/right_hand_side.py --dimension 3 --particles 1000000 --mpi
"""

import argparse
import json
import resource
import sys
import time

import numpy as np
from scipy.special import ndtr

import meanfield as mf
from meanfield.runtime.parallel import local_slice, max_over_ranks, rank, size, sum_over_ranks
from meanfield.sphere.geometry import normalise

# The largest relative error that a particle flow asks of its field by default.
TOLERANCE = 1e-11


def main():
    """Measure what the command line says."""
    arguments = _arguments()
    comm = None
    if arguments.mpi:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    row = measure(
        arguments.dimension, arguments.beta, arguments.particles, arguments.dense, comm
    )
    if rank(comm) == 0:
        print(json.dumps(row))


def measure(dimension, beta, particles, with_dense=False, comm=None):
    """Times in seconds, memory in MiB and errors of one case, as a dict; collective.

    Parameters
    ----------
    dimension : int
        2 for S¹, 3 for S².
    beta : float
    particles : int
        On all ranks together.
    with_dense : bool
        Also the direct and the dense sums, which cost O(N²); on one rank only.
    comm : communicator, optional
    """
    model, nodes, masses = _case(dimension, beta, particles, comm)
    everything = mf.Measure(nodes, masses, comm)

    def velocity(method):
        # What a particle flow does at each stage of its steps.
        moved = everything.moved(nodes)
        field = mf.field(model, moved, method, tolerance=TOLERANCE, pointwise=False)
        return field.velocity(nodes)

    fast, seconds = _best(lambda: velocity("funk_hecke"), comm)
    row = {
        "dimension": dimension,
        "beta": beta,
        "particles": particles,
        "ranks": size(comm),
        "fast": seconds,
        "memory": sum_over_ranks(_peak_memory(), comm),
        "degree": _degree(beta, dimension),
    }
    if with_dense:
        # The fast sum was first, so that its memory was measured alone.
        _, row["direct"] = _best(lambda: velocity("direct"), comm)
        dense, row["dense"] = _best(lambda: dense_velocity(model, nodes, masses), comm)
        _, row["dense_in_place"] = _best(
            lambda: dense_velocity_in_place(model, nodes, masses), comm
        )
        # Relative to attention's part alone, which is all that is summed.
        attention = dense - model.sign * model.perceptron.drift(nodes)
        largest = np.linalg.norm(attention, axis=1).max()
        row["error"] = float(np.linalg.norm(fast - dense, axis=1).max() / largest)
    return row


def dense_velocity(model, x, masses):
    """The velocity as one writes it down in numpy, with the N × N matrix of the kernel."""
    kernel = np.exp(model.attention.beta * (x @ x.T - 1))
    drift = kernel @ (masses[:, None] * x) + _perceptron(model.perceptron, x)
    return model.sign * (drift - np.sum(drift * x, axis=1, keepdims=True) * x)


def dense_velocity_in_place(model, x, masses):
    """The same by somebody who knows what temporary arrays cost."""
    kernel = x @ x.T
    kernel -= 1
    kernel *= model.attention.beta
    np.exp(kernel, out=kernel)
    drift = kernel @ (masses[:, None] * x) + _perceptron(model.perceptron, x)
    return model.sign * (drift - np.sum(drift * x, axis=1, keepdims=True) * x)


def _perceptron(perceptron, x):
    s = x @ perceptron.a.T + perceptron.bias
    return (s * ndtr(s)) @ perceptron.omega


def _case(dimension, beta, particles, comm):
    """A model with d neurons, as in the published runs, and uniform particles."""
    rng = np.random.default_rng(1)
    weights = normalise(rng.normal(size=(dimension, dimension)))
    perceptron = mf.Perceptron(weights, rng.normal(size=dimension), activation="gelu")
    model = mf.Model(mf.Attention(beta, amplitude="peak"), perceptron)
    rows = local_slice(particles, comm)
    rng = np.random.default_rng([2, rank(comm)])
    nodes = normalise(rng.normal(size=(rows.stop - rows.start, dimension)))
    return model, nodes, np.full(len(nodes), 1 / particles)


def _best(function, comm):
    """The result and the least time of some repeats."""
    best, spent, repeats = np.inf, 0.0, 0
    # The first one fills caches. All ranks see the same times and so stop together.
    while repeats < 2 or spent < 1.0:
        if comm is not None:
            comm.Barrier()
        start = time.perf_counter()
        result = function()
        seconds = max_over_ranks(time.perf_counter() - start, comm)
        best, spent, repeats = min(best, seconds), spent + seconds, repeats + 1
    return result, best


def _degree(beta, dimension):
    from meanfield.sphere.funk_hecke import truncation_degree

    return truncation_degree(beta, dimension, 0.1 * TOLERANCE)


def _peak_memory():
    """This process's largest resident memory so far, in MiB."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 2**10)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, choices=(2, 3), default=3, help="d of S^{d-1}")
    parser.add_argument("--beta", type=float, default=50.0, help="inverse temperature")
    parser.add_argument("--particles", type=int, default=1000, help="on all ranks together")
    parser.add_argument("--dense", action="store_true", help="also the sums of O(N²)")
    parser.add_argument("--mpi", action="store_true", help="share particles among mpiexec's ranks")
    arguments = parser.parse_args()
    if arguments.dense and arguments.mpi:
        parser.error("--dense measures on one rank: leave out --mpi")
    return arguments


if __name__ == "__main__":
    main()
