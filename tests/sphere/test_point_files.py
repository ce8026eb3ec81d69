"""Clouds from files come back as they were written; errors say where the trouble is."""

import numpy as np
import pytest

from meanfield.sphere.geometry import normalise
from meanfield.sphere.point_files import read_points


@pytest.fixture
def cloud():
    generator = np.random.default_rng(0)
    masses = generator.random(7)
    return normalise(generator.normal(size=(7, 3))), masses / masses.sum()


def test_npy_has_equal_masses(tmp_path, cloud):
    np.save(tmp_path / "cloud.npy", cloud[0])
    nodes, masses = read_points(tmp_path / "cloud.npy")
    assert np.array_equal(nodes, cloud[0])
    assert type(nodes) is np.ndarray and nodes.flags.writeable
    assert np.allclose(masses, 1 / 7)


def test_npz_with_masses(tmp_path, cloud):
    np.savez(tmp_path / "cloud.npz", nodes=cloud[0], masses=cloud[1])
    nodes, masses = read_points(tmp_path / "cloud.npz")
    assert np.array_equal(nodes, cloud[0]) and np.array_equal(masses, cloud[1])


def test_npz_without_masses(tmp_path, cloud):
    np.savez(tmp_path / "cloud.npz", nodes=cloud[0])
    assert np.allclose(read_points(tmp_path / "cloud.npz")[1], 1 / 7)


@pytest.mark.parametrize("with_masses", [True, False])
def test_csv(tmp_path, cloud, with_masses):
    table = np.column_stack(cloud) if with_masses else cloud[0]
    header = "x, y, z, mass" if with_masses else "x,y,z"
    np.savetxt(
        tmp_path / "cloud.csv", table, fmt="%.17g", delimiter=",", header=header, comments=""
    )
    nodes, masses = read_points(tmp_path / "cloud.csv")
    assert np.array_equal(nodes, cloud[0])
    assert np.array_equal(masses, cloud[1] if with_masses else np.full(7, 1 / 7))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("1,0\n", "line 1"),
        ("", "line 1"),
        ("mass,x,y\n1,1,0\n", "mass to be the last"),
        ("x,y\n1,0\n0;1\n", "line 3 is '0;1'"),
        ("x,y\n1,0,0\n", "line 2"),
        ("x,y\n1,0\n3,4\n", "point 1.*length 5"),
        ("x,y\n1,0\nnan,0\n", "point 1"),
        ("x,y\n", "shape"),
        ("x,y,mass\n1,0,0.5\n0,1,-0.5\n", "mass 1"),
        ("x,y,mass\n1,0,0.5\n0,1,0.4\n", "sum to 0.9"),
    ],
)
def test_csv_errors_name_file_place_and_expectation(tmp_path, text, named):
    path = tmp_path / "cloud.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=named) as raised:
        read_points(path)
    assert str(path) in str(raised.value) and "expected" in str(raised.value)


def test_array_errors(tmp_path, cloud):
    np.save(tmp_path / "flat.npy", cloud[1])
    np.save(tmp_path / "complex.npy", cloud[0] + 1j)
    np.savez(tmp_path / "names.npz", points=cloud[0])
    np.savez(tmp_path / "masses.npz", nodes=cloud[0], masses=cloud[1][:-1])
    np.save(tmp_path / "array.npy", cloud[0])
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    (tmp_path / "empty.npy").touch()
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "flat.npy").read_bytes()[:-8])
    (tmp_path / "cloud.dat").touch()
    for name, words in {
        "flat.npy": "shape",
        "complex.npy": "complex128",
        "names.npz": "points",
        "masses.npz": "one a point",
        "array.npz": "ending .npy",
        "empty.npy": "No data",
        "broken.npz": "zip",
        "cut.npy": "expected|larger|greater",
        "cloud.dat": "unknown kind",
    }.items():
        with pytest.raises(ValueError, match=words) as raised:
            read_points(tmp_path / name)
        assert name in str(raised.value)


def test_objects_are_never_loaded(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    np.save(tmp_path / "cloud.npy", np.array([Harmful()], dtype=object))
    with pytest.raises(ValueError, match=r"cloud\.npy"):
        read_points(tmp_path / "cloud.npy")
    assert not (tmp_path / "written").exists()


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match=r"missing\.npy"):
        read_points(tmp_path / "missing.npy")
