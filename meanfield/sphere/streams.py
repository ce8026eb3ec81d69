"""Random numbers that belong to global rows, so that they do not depend on the rank count.

Rows are numbered over all ranks and cut in chunks of fixed length. Every chunk has a
counter-based generator of its own (Philox), whose key comes from the seed and the purpose and
whose counter from the chunk and the step. A rank makes the chunks that overlap its block and
keeps its rows of them.
"""

from functools import lru_cache

import numpy as np

# Long enough to make starting a generator cheap, short enough for a few particles.
CHUNK_ROWS = 1024


def draw_rows(seed, purpose, step, rows, draw):
    """Random rows by any recipe that fills a chunk of them from one generator.

    Parameters
    ----------
    seed : int
        ≥ 0, the only source of randomness.
    purpose : str
        What the numbers are for; different purposes are independent.
    step : int
        ≥ 0; different steps are independent.
    rows : slice
        Global numbers of the rows wanted, from ``start`` to ``stop``.
    draw : callable
        (numpy.random.Generator, count) -> array of that many rows. It may use as many
        variates as it likes: the next chunk does not share its generator.

    Returns
    -------
    ndarray, shape (rows.stop - rows.start, ...)

    Raises
    ------
    ValueError
        If the seed or the step is no integer ≥ 0, or the slice is no range of rows.

    Examples
    --------
    >>> whole = uniforms(7, "example", 0, slice(0, 3000), 2)
    >>> part = uniforms(7, "example", 0, slice(1000, 1500), 2)
    >>> bool(np.array_equal(part, whole[1000:1500]))
    True
    """
    _check(seed, step, rows)
    key = _key(int(seed), purpose)
    first = rows.start // CHUNK_ROWS
    # An empty slice still takes one chunk, for the shape of its rows.
    last = max(first, (rows.stop - 1) // CHUNK_ROWS)
    chunks = []
    for chunk in range(first, last + 1):
        # The generator counts in the lowest word, so chunks and steps never overlap.
        bits = np.random.Philox(key=key, counter=[0, chunk, int(step), 0])
        begin = chunk * CHUNK_ROWS
        here = slice(max(rows.start - begin, 0), max(rows.stop - begin, 0))
        chunks.append(draw(np.random.Generator(bits), CHUNK_ROWS)[here])
    return np.concatenate(chunks)


def uniforms(seed, purpose, step, rows, columns):
    """Independent uniform variates in [0, 1), one row of `columns` for each global row.

    See `draw_rows` for the parameters.
    """
    return draw_rows(
        seed, purpose, step, rows, lambda generator, count: generator.random((count, columns))
    )


def normals(seed, purpose, step, rows, columns):
    """Independent standard normal variates, one row of `columns` for each global row.

    See `draw_rows` for the parameters.
    """
    return draw_rows(
        seed,
        purpose,
        step,
        rows,
        lambda generator, count: generator.standard_normal((count, columns)),
    )


@lru_cache(maxsize=64)
def _key(seed, purpose):
    sequence = np.random.SeedSequence(seed, spawn_key=tuple(purpose.encode()))
    return sequence.generate_state(2, np.uint64)


def _check(seed, step, rows):
    for name, value in (("seed", seed), ("step", step)):
        if not isinstance(value, int | np.integer) or value < 0:
            raise ValueError(f"{name}={value!r}: expected an integer >= 0")
    if rows.step not in (None, 1) or not 0 <= rows.start <= rows.stop:
        raise ValueError(f"rows={rows!r}: expected slice(start, stop) with 0 <= start <= stop")
