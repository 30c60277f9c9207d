"""Fixtures that several tests share; the kernels compile once for all of them."""

import os
from pathlib import Path

import numpy as np
import pytest

# Threads of BLAS and of our own kernels would fight for the two cores that the test processes already use.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real recordings; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("STEELYARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real recordings at {folder}; set STEELYARD_DATA")
    return folder
