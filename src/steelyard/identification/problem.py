"""`Problem`: a robot and its recordings as a regression, streamed in blocks and kept as small triangular factors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.decimation import Decimation
from ..data.recording import Recording
from ..dynamics import BlindDirection, blind_directions
from ..errors import DataError
from ..robot.robot import Robot
from .factors import Factors, Weigh, factorise, factorise_mixed
from .model import Experiment, LinearModel, Load, Rows
from .solving import BLIND
from .terms import Term

Array = NDArray[np.float64]
Stream = Callable[[], Iterable[Recording]]  # a recording too long for memory, block by block, from its start each time

# A block's regressor should stay near the processor.
_BLOCK_BYTES = 16 << 20
# Below this size the rows are kept for the passes that come; above, they are computed again each time.
_KEEP_BYTES = 400 << 20
_GOLDEN = 0.5 * (5**0.5 - 1.0)


@dataclass(frozen=True)
class DataSet:
    """What a regression says of itself before anything is estimated."""

    rows: int
    rank: int
    base_rank: int
    condition: float  # of W with columns of length one: what no choice of units can mend
    condition_unscaled: float
    column_norms: Mapping[str, float]
    blind: tuple[BlindDirection, ...]


def _pieces(source: Recording | Stream, size: int) -> Iterator[Recording]:
    blocks = [source] if isinstance(source, Recording) else source()
    for block in blocks:
        for start in range(0, len(block), size):
            yield block if len(block) <= size else block.between(start, start + size)


def _spread(items: Iterable[Any], every: int) -> Iterator[Any]:
    """About one of so many, at places that fall in step with no period of the motion."""
    return (item for k, item in enumerate(items) if (k * _GOLDEN) % 1.0 < 1.0 / every)


class _Filtered:
    """Rows through a parallel filter: only columns that a joint can feel take part."""

    def __init__(self, model: LinearModel, decimation: Decimation, rate_hz: float) -> None:
        self.pairs = [(j, c) for j, columns in enumerate(model.active) for c in columns]
        self.joints = np.array([j for j, _ in self.pairs], dtype=np.int64)
        self.columns = np.array([c for _, c in self.pairs], dtype=np.int64)
        self.n, self.rank = len(model.active), model.rank
        self.stream = decimation.stream(rate_hz, len(self.pairs) + self.n)
        self.half, self.factor = decimation.half(rate_hz), decimation.factor
        self.decimation, self.rate_hz = decimation, rate_hz
        self.use: list[NDArray[np.bool_]] = []
        self.given = 0

    def _rows(self, out: Array) -> Rows:
        W = np.zeros((len(out), self.n, self.rank))
        W[:, self.joints, self.columns] = out[:, : -self.n]
        return Rows(W, out[:, -self.n :], np.ones((len(out), self.n), dtype=bool))

    def push(self, rows: Rows) -> Rows:
        self.use.append(rows.use)
        flat = np.concatenate([rows.W[:, self.joints, self.columns], rows.tau], axis=1)
        return self._rows(self.stream.push(flat))

    def finish(self) -> Rows:
        return self._rows(self.stream.finish())

    def usable(self) -> NDArray[np.bool_]:
        return self.decimation.usable(np.concatenate(self.use), self.rate_hz)


def _decimated(model: LinearModel, rows: Iterable[Rows], decimation: Decimation, rate_hz: float) -> Iterator[Rows]:
    """Filtered rows, one block behind, because which of them count is known only when their window is whole."""
    filtered = _Filtered(model, decimation, rate_hz)
    outputs = [filtered.push(block) for block in rows]
    outputs.append(filtered.finish())
    use, start = filtered.usable(), 0
    for out in outputs:
        if len(out.tau):
            yield Rows(out.W, out.tau, use[start : start + len(out.tau)])
            start += len(out.tau)


@dataclass(frozen=True, eq=False)
class Problem:
    """A regression W beta = tau over any number of recordings."""

    model: LinearModel
    experiments: tuple[Experiment, ...]
    decimation: Decimation | None = None
    given: Factors | None = field(default=None, repr=False)  # where another problem has factorised the same rows
    _kept: dict[str, list[Rows]] = field(default_factory=dict, repr=False)

    def with_terms(self, terms: tuple[Term, ...]) -> "Problem":
        """The same recordings through other terms."""
        return replace(self, model=self.model.with_terms(terms), given=None, _kept={})

    def solved_by(self, model: LinearModel) -> "Problem":
        """The problem of an answer: this one, or the same recordings through the answer's own model."""
        return self if model is self.model else replace(self, model=model, given=None, _kept={})

    @property
    def robot(self) -> Robot:
        return self.model.robot

    @property
    def rank(self) -> int:
        return self.model.rank

    @cached_property
    def nominal(self) -> Array:
        """The base parameters of the model as it was given."""
        return self.model.base.reduce(self.model.nominal)

    @property
    def _block(self) -> int:
        width = self.robot.n * max(1, len(self.model.names))
        return int(np.clip(_BLOCK_BYTES // (8 * width), 128, 4096))

    def _generate(self, every: int = 1, passing: bool = False) -> Iterator[Rows]:
        """All blocks of rows, or every k-th; only a parallel filter needs those between.

        A `passing` block is good until the next one is asked for.
        """
        for experiment in self.experiments:
            load = experiment.load
            pieces = self._prepared_pieces(experiment)
            if self.decimation is None:
                yield from (self.model.rows(piece, load, passing) for piece in _spread(pieces, every))
                continue
            rows = (self.model.rows(piece, load, passing=True) for piece in pieces)
            yield from _spread(_decimated(self.model, rows, self.decimation, experiment.rate_hz), every)

    def _prepared_pieces(self, experiment: Experiment) -> Iterator[Recording]:
        if isinstance(experiment.recording, Recording):
            return _pieces(self.model.prepared(experiment.recording), self._block)
        if self.model.reads_whole:
            raise DataError("a delay or bristles of LuGre need a recording in memory; this one is a stream of blocks")
        return (self.model.prepared(piece) for piece in _pieces(experiment.recording, self._block))

    def blocks(self) -> Iterable[Rows]:
        """All rows of the regression, block by block, each good until the next; kept in memory where they are few."""
        if "rows" in self._kept:
            return self._kept["rows"]
        lengths = [len(e.recording) if isinstance(e.recording, Recording) else None for e in self.experiments]
        each = 8 * self.robot.n * (self.rank + 2) // (1 if self.decimation is None else self.decimation.factor)
        if all(length is not None for length in lengths) and sum(map(int, filter(None, lengths))) * each < _KEEP_BYTES:
            self._kept["rows"] = list(self._generate())
            return self._kept["rows"]
        return self._generate(passing=True)

    def some_blocks(self, every: int) -> Iterable[Rows]:
        """Every k-th block of rows, spread over the data."""
        return _spread(self._kept["rows"], every) if "rows" in self._kept else self._generate(every)

    def factorised(self, weigh: Weigh | None = None) -> Factors:
        """A factor a joint; `weigh` gives each row a factor."""
        if weigh is None:
            return self.factors
        return factorise(self.blocks(), self.model.active, self.rank, weigh)

    def mixed(self, mix: Array) -> Factors:
        """One factor over samples whose joints are mixed by a matrix, as a full noise covariance asks for."""
        return factorise_mixed(self.blocks(), self.rank, mix)

    @cached_property
    def factors(self) -> Factors:
        """A factor a joint, every row counted alike."""
        factors = self.given
        if factors is None:
            factors = factorise(self.blocks(), self.model.active, self.rank, None)
        rows = int(factors.rows.sum())
        if rows < self.rank:
            raise DataError(
                f"{rows} usable torque values for {self.rank} base parameters; record for longer, filter less, "
                "or identify fewer bodies"
            )
        for part, joint in zip(factors.parts, self.robot.dof_names, strict=True):
            if not np.isfinite(part.R).all():
                raise DataError(f"the rows of {joint} hold values that are not finite; repair the recording first")
        return factors

    def stacked(self, weights: Array | None = None) -> tuple[Array, Array]:
        """(A, y) with ‖A beta − y‖² = Σ_j weights_j ‖W_j beta − tau_j‖²."""
        return self.factors.stacked(weights)

    @cached_property
    def data_set(self) -> DataSet:
        """Rank, condition and blind directions of the data."""
        A, _ = self.stacked()
        norms = np.linalg.norm(A, axis=0)
        seen = norms > 0
        scaled = np.linalg.svd(A[:, seen] / norms[seen], compute_uv=False) if seen.any() else np.zeros(0)
        plain = np.linalg.svd(A, compute_uv=False)
        names = self.model.base.short_names
        rank = int((scaled > BLIND * scaled.max(initial=0.0)).sum())
        return DataSet(
            rows=int(self.factors.rows.sum()),
            rank=rank,
            base_rank=self.rank,
            condition=float(scaled[0] / scaled[-1]) if rank == self.rank else float("inf"),
            condition_unscaled=float(plain[0] / plain[-1]) if rank == self.rank else float("inf"),
            column_norms=dict(zip(names, norms.tolist(), strict=True)),
            blind=blind_directions(names, A, BLIND) if rank < self.rank else (),
        )


def build_problem(
    robot: Robot,
    recordings: Recording | Stream | Experiment | Sequence[Recording | Stream | Experiment],
    *,
    terms: Sequence[Term] = (),
    fixed: Mapping[str, float] | None = None,
    decimation: Decimation | None = None,
    dead_zone: Array | None = None,
) -> Problem:
    """The regression of recordings that are ready (they hold qd and qdd), on what the robot has to identify."""
    given = [recordings] if isinstance(recordings, Recording | Experiment) or callable(recordings) else list(recordings)
    if not given:
        raise DataError("no recording was given")
    experiments = tuple(x if isinstance(x, Experiment) else Experiment(x) for x in given)
    loads: dict[str, str] = {}
    for experiment in experiments:
        load: Load | None = experiment.load
        if load is not None and load.parameters is None and loads.setdefault(load.name, load.body) != load.body:
            raise DataError(f"the load '{load.name}' sits on '{loads[load.name]}' and on '{load.body}'; name one body")
    model = LinearModel(robot, tuple(terms), dict(fixed or {}), tuple(loads.items()), dead_zone)
    twice = [name for name in model.names if model.names.count(name) > 1]
    if twice:
        raise DataError(f"two parameters are called {twice[0]}; give loads and terms names of their own")
    return Problem(model, experiments, decimation)


def residual_blocks(problem: Problem, beta: Array, most: int) -> tuple[list[Rows], list[Array], float]:
    """Blocks spread over the data with their residuals tau − W beta, of at most about `most` rows, and their share."""
    every = max(1, int(np.ceil(int(problem.factors.rows.max()) / most)))
    blocks = list(problem.some_blocks(every))
    taken = sum(int(block.use.sum()) for block in blocks)
    share = taken / max(1, int(problem.factors.rows.sum()))
    return blocks, [block.tau - block.W @ beta for block in blocks], share


def used(values: Sequence[Array], blocks: Sequence[Rows], j: int) -> Array:
    """The values of joint j that count, of all blocks."""
    return np.concatenate([value[block.use[:, j], j] for value, block in zip(values, blocks, strict=True)])
