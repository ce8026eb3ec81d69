"""Discontinuous polynomials on a mesh of S¹ or S², as arrays that a time step can use.

Firedrake provides mesh, elements, geometry and halos once; afterwards a step works on
arrays, one row a cell. All weights are relative to the area of the whole mesh, so that a
density with respect to the uniform probability integrates to its mass.
"""

import numpy as np

from meanfield.runtime.parallel import sum_over_ranks
from meanfield.sphere.geometry import normalise


class DiscontinuousSpace:
    """Polynomials of degree 0 or 1 on each cell of a closed mesh, and what fluxes need.

    A function is an array (cells, n) of values: of degree 0 the mean, of degree 1 the
    values at the cell's corners. Quadrature nodes and facet nodes lie on the sphere: what
    lives on the flat or curved cell is moved there along the radius.

    Both cells at a facet see one normal, half the difference of their conormals, and one
    row of nodes, whose values their owner shares. So what leaves one cell enters the other
    to the last bit, whatever plane each lies in and whichever rank holds it.

    Parameters
    ----------
    mesh : firedrake mesh
        Closed, of circle or sphere; simplices or quadrilaterals, flat or curved.
    degree : 0 or 1

    Attributes
    ----------
    cells : int
        How many this rank owns; the arrays below have one row for each.
    global_cells : int
    area : float
        Of the whole mesh.
    function_space : firedrake function space
    basis : ndarray, shape (q, n)
        Basis functions at the quadrature nodes of a cell.
    nodes : ndarray, shape (cells, q, d)
    weights : ndarray, shape (cells, q)
        Positive; they sum to one over all ranks.
    integrals : ndarray, shape (cells, n)
        ∫ of each basis function.
    areas : ndarray, shape (cells,)
        Their sums.
    gradients : ndarray, shape (cells, n, q, d)
        Weight times gradient of each basis function; of degree 1 only.
    inverse_mass : ndarray, shape (cells, n, n)
    corners : ndarray, shape (cells, n, d)
        Where the values of a function sit in the mesh.
    centres : ndarray, shape (cells, d)
        Unit rows.
    traces : ndarray, shape (f, n)
        Basis functions at the facet nodes of a cell.
    facet_nodes : ndarray, shape (p, d)
        Unit rows, those that this rank owns.
    facet_normals : ndarray, shape (p, d)
        Weight times normal; which side it points to is the facet's choice.
    facets : ndarray of int, shape (cells, f)
        Where a cell's facet nodes are among all of the rank, the shared ones last.
    sides : ndarray, shape (cells, f)
        1 where the facet's normal points out of the cell, −1 where into it.
    partners : ndarray of int, shape (cells, f)
        Entry of the flat facet rows of all cells, in the order of `share`, that is the same
        facet node seen from the other side.
    """

    def __init__(self, mesh, degree):
        if degree not in (0, 1):
            raise ValueError(f"degree={degree!r}: expected 0 or 1")
        if mesh.geometric_dimension not in (2, 3) or (
            mesh.topological_dimension != mesh.geometric_dimension - 1
        ):
            raise ValueError(
                f"mesh of dimension {mesh.topological_dimension} in "
                f"R^{mesh.geometric_dimension}: expected a mesh of S¹ or S²"
            )
        self.mesh = mesh
        self.degree = degree
        self.comm = mesh.comm
        self.ambient_dim = mesh.geometric_dimension
        self._make_cells()
        self._make_facets()

    def _make_cells(self):
        import firedrake as fd
        from finat.ufl import FiniteElement, VectorElement

        mesh, d = self.mesh, self.ambient_dim
        cell = mesh.ufl_cell()
        family = "DQ" if cell.cellname == "quadrilateral" else "DG"
        # Corner values, so that a function is nonnegative exactly when they are.
        variant = "equispaced" if self.degree else None
        self.function_space = fd.FunctionSpace(mesh, family, self.degree, variant=variant)
        self._shared = fd.Function(self.function_space)
        exactness = 2 * self.degree
        rule = FiniteElement("Quadrature", cell=cell, degree=exactness, quad_scheme="default")
        at_nodes = fd.FunctionSpace(mesh, rule)
        vectors = fd.FunctionSpace(mesh, VectorElement(rule, dim=d))
        dx = fd.dx(degree=exactness, metadata={"quadrature_rule": "default"})

        rows = at_nodes.cell_node_map().values
        self.cells = len(rows)
        self.global_cells = sum_over_ranks(self.cells, self.comm)
        if self.degree:
            weights = _local(fd.assemble(fd.TestFunction(at_nodes) * dx))[rows]
        else:
            # One node would not do for the area of a curved cell.
            areas = fd.assemble(fd.TestFunction(self.function_space) * fd.dx)
            weights = _local(areas)[self.function_space.cell_node_map().values]
        position = fd.SpatialCoordinate(mesh)
        nodes = _local(fd.Function(vectors).interpolate(position))[rows]
        self.area = sum_over_ranks(float(weights.sum()), self.comm)
        self.weights = weights / self.area
        self.nodes = normalise(nodes.reshape(-1, d)).reshape(nodes.shape)
        self.centres = normalise(np.einsum("kq,kqd->kd", weights, nodes))

        dofs = self.function_space.cell_node_map()
        self._dofs, self._all_dofs = dofs.values, dofs.values_with_halo
        places = fd.VectorFunctionSpace(mesh, family, self.degree, variant=variant)
        self.corners = _local(fd.Function(places).interpolate(position))[self._dofs]
        basis, gradients = [], []
        for number in range(self._dofs.shape[1]):
            function = fd.Function(self.function_space)
            function.dat.data_wo_with_halos[self._all_dofs[:, number]] = 1.0
            basis.append(_local(fd.Function(at_nodes).interpolate(function))[rows])
            if self.degree:
                gradient = fd.Function(vectors).interpolate(fd.grad(function))
                gradients.append(_local(gradient)[rows])
        basis = np.stack(basis, axis=-1)
        self.basis = _reference_row(basis, self.comm)
        self.integrals = self.weights @ self.basis
        self.areas = self.integrals.sum(axis=1)
        if self.degree:
            self.gradients = np.stack(gradients, axis=1) * self.weights[:, None, :, None]
        mass = np.einsum("kq,qi,qj->kij", self.weights, self.basis, self.basis)
        self.inverse_mass = np.linalg.inv(mass)

    def _make_facets(self):
        import firedrake as fd

        mesh = self.mesh
        # A facet of the circle is a point.
        degree = self.degree if mesh.topological_dimension > 1 else 0
        space = fd.FunctionSpace(mesh, "HDiv Trace", degree)
        vectors = fd.VectorFunctionSpace(mesh, "HDiv Trace", degree)
        self._shared_facets = fd.Function(space)
        # The rule whose nodes are those of the space, so that each row gets its weight.
        dS = fd.dS(degree=2 * degree + 1)
        normal = fd.FacetNormal(mesh)
        test = fd.TestFunction(vectors)
        between = (normal("+") - normal("-")) / 2
        summed = fd.assemble(fd.inner(between, test("+")) * dS)
        position = fd.Function(vectors).interpolate(fd.SpatialCoordinate(mesh))
        self.facet_normals = summed.dat.data_ro / self.area
        self.facet_nodes = normalise(position.dat.data_ro)

        facets = space.cell_node_map()
        self.facets = facets.values
        reference = space.finat_element.fiat_equivalent.dual_basis()
        points = [next(iter(node.pt_dict)) for node in reference]
        element = self.function_space.finat_element.fiat_equivalent
        self.traces = next(iter(element.tabulate(0, np.array(points)).values())).T
        if self.degree == 0:
            self.traces = np.ones((len(points), 1))

        outward = position.dat.data_ro_with_halos[self.facets] - self.corners.mean(
            axis=1, keepdims=True
        )
        normals = fd.Function(vectors)
        normals.dat.data_wo[:] = self.facet_normals
        across = normals.dat.data_ro_with_halos[self.facets]
        self.sides = np.sign(np.einsum("kfd,kfd->kf", outward, across))
        self.partners = _partners(facets.values_with_halo)[: self.cells]

    # Sharing over ranks

    def share(self, values):
        """Values (cells, n) of this rank's cells, followed by those of its neighbours' cells."""
        self.put(self._shared, values)
        return self._shared.dat.data_ro_with_halos[self._all_dofs]

    def put(self, function, values):
        """Write values (cells, n) into a Firedrake function of this space."""
        function.dat.data_wo[self._dofs] = values

    def get(self, function):
        """Values (cells, n) of a Firedrake function of this space."""
        return function.dat.data_ro[self._dofs]

    def share_facets(self, values):
        """Values (p,) at this rank's facet nodes, at all nodes of a cell: (cells, f)."""
        self._shared_facets.dat.data_wo[:] = values
        return self._shared_facets.dat.data_ro_with_halos[self.facets]

    def global_numbers(self):
        """Numbers over all ranks of the cells in the order of `share`; degree 0 only."""
        return self.function_space.dof_dset.lgmap.indices[self._all_dofs[:, 0]]

    def both_traces(self, values):
        """A function (cells, n) at the facet nodes, inside and outside: two arrays (cells, f)."""
        everywhere = self.share(values) @ self.traces.T
        return everywhere[: self.cells], everywhere.ravel()[self.partners]

    # Integrals

    def means(self, values):
        """Mean of a function over each cell, shape (cells,)."""
        return self.masses(values) / self.areas

    def masses(self, values):
        """Integral of a function over each cell, shape (cells,)."""
        return np.einsum("kn,kn->k", self.integrals, values)

    def total(self, values):
        """Integral of a function over the mesh; collective."""
        return sum_over_ranks(float(np.sum(self.integrals * values)), self.comm)

    def neighbours(self):
        """Rows of `share` next to each cell, one a facet node, shape (cells, f)."""
        return self.partners // self.facets.shape[1]


def _local(function):
    """Values on this rank, halos included."""
    return function.dat.data_ro_with_halos


def _reference_row(rows, comm):
    """What all cells have in common, also for a rank without cells."""
    candidates = [rows[0] if len(rows) else None]
    if comm.size > 1:
        candidates = comm.allgather(candidates[0])
    return next(row for row in candidates if row is not None)


def _partners(facets):
    """Flat number of the entry of `facets` (cells, f) that names the same node from the other side.

    Cells at the rim of the halo have no partner there; their entries name themselves.
    """
    flat = facets.ravel()
    order = np.argsort(flat, kind="stable")
    same = np.flatnonzero(flat[order[1:]] == flat[order[:-1]])
    partners = np.arange(flat.size)
    partners[order[same]] = order[same + 1]
    partners[order[same + 1]] = order[same]
    return partners.reshape(facets.shape)
