"""Recordings that nobody should have to work with, for Hypothesis."""

import numpy as np
from hypothesis import strategies as st

from steelyard.data.recording import Recording

NONSENSE = np.array([0.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 1e12])


@st.composite
def odd_recordings(draw):
    """Few rows or many of one kind, constants, holes, nonsense, uneven times."""
    rows, columns = draw(st.integers(0, 60)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    steps = draw(st.sampled_from([[1e-3], [1e-3, 1e-3, 1.1e-3], [1e-3, 0.5], [1e-9, 1.0], [1e-3, 1e6], [1e-9]]))
    shape = (rows, columns)

    def channel():
        kind = draw(st.sampled_from(["noise", "constant", "smooth", "nonsense"]))
        if kind == "noise":
            return rng.normal(size=shape)
        if kind == "constant":
            return np.full(shape, rng.choice([0.0, 1.0, -3.0]))
        x = np.sin(np.outer(np.arange(rows), 1 + np.arange(columns)) * 0.1)
        if kind == "nonsense":
            x[rng.random(shape) < rng.choice([0.05, 0.9])] = rng.choice(NONSENSE)
        return x

    optional = [channel() if draw(st.booleans()) else None for _ in range(2)]
    return Recording(np.cumsum(rng.choice(steps, size=rows)), channel(), channel(), *optional)
