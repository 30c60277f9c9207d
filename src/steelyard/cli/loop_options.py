"""What the options about the loop mean: IV, DIDIM, CLOE and CLIE simulate the robot as it was driven."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import OptionError
from ..identification.closed_loop.loop_file import read_loop
from ..identification.closed_loop.mujoco_rollout import MuJoCo
from ..identification.closed_loop.pieces import Shooting
from ..identification.estimators import CLOE, DIDIM, IV
from ..identification.estimators.physical import Physical
from ..identification.fit import Estimator
from .options import names

_ROLLOUTS = ("mujoco", "own")


def _settings(method: Estimator, texts: "LoopTexts") -> Estimator:
    if isinstance(method, Physical):
        return replace(method, inner=_settings(method.inner, texts))
    if isinstance(method, IV | DIDIM) and texts.file is not None:
        return replace(method, loop=read_loop(texts.file))
    if not isinstance(method, CLOE):
        return method
    if texts.file is not None:
        method = replace(method, loop=read_loop(texts.file))
    if texts.rollout == "mujoco":
        method = replace(method, rollout=MuJoCo())
    if texts.horizon is not None and method.signals != ("tau",):
        method = replace(method, shooting=Shooting(texts.horizon))
    if texts.signals is not None:
        method = replace(method, signals=tuple(names(texts.signals) or ()))
    sought = tuple(names(texts.seek) or ())
    if "gains" in sought and "tau" not in method.signals:
        method = replace(method, signals=(*method.signals, "tau"))  # positions alone do not tell gains from inertias
    return replace(method, estimate=sought) if sought else method


@dataclass(frozen=True)
class LoopTexts:
    """These options, as they were typed."""

    file: Path | None = None
    seek: str | None = None
    rollout: str = "own"
    horizon: float | None = None
    signals: str | None = None

    def into(self, methods: Sequence[Estimator]) -> tuple[Estimator, ...]:
        """The methods, told how the robot was driven and what else is to be found."""
        if self == LoopTexts():
            return tuple(methods)
        if self.rollout not in _ROLLOUTS:
            raise OptionError(f"no rollout '{self.rollout}'; valid: {', '.join(_ROLLOUTS)}")
        bare = [method.inner if isinstance(method, Physical) else method for method in methods]
        if self != LoopTexts(self.file) and not any(isinstance(method, CLOE) for method in bare):
            raise OptionError(
                "--seek, --rollout, --horizon and --signals are settings of CLOE and CLIE; add --algorithm CLOE"
            )
        if not any(isinstance(method, IV | DIDIM | CLOE) for method in bare):
            raise OptionError("--loop is for methods that simulate; add --algorithm IV, DIDIM, CLOE or CLIE")
        return tuple(_settings(method, self) for method in methods)
