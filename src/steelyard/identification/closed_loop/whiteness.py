"""Residuals that remember are the sign of a wrong loop: noise forgets from sample to sample, a wrong model does not.

A controller, a delay or a friction that is not what was simulated biases the answer, and no covariance tells.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Means over this part of a recording are what is left of noise that forgets …
_WINDOW_SHARE = 0.01
# … and so many times what white noise would leave is a motion, not a noise …
REMEMBERS = 2.5
# … which matters from this share of what was to be explained on.
MATTERS = 0.01


def _means(e: Array, use: NDArray[np.bool_]) -> tuple[Array, float]:
    """Means of the residuals over windows, and the root of the windows' length."""
    kept = e[use]
    length = max(4, int(_WINDOW_SHARE * len(kept)))
    count = len(kept) // length
    return kept[: count * length].reshape(count, length).mean(axis=1), float(np.sqrt(length))


def loop_warning(
    residuals: Sequence[Array], uses: Sequence[NDArray[np.bool_]], explained: Sequence[Array], names: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """What to say where residuals (T, m) remember; and the figures. `explained` is what a fit had to explain."""
    told, figures = [], []
    for j, name in enumerate(names):
        rows = sum(int(use[:, j].sum()) for use in uses)
        sizes = [float(np.sum(e[use[:, j], j] ** 2)) for e, use in zip(residuals, uses, strict=True)]
        whole = [float(np.sum(x[use[:, j], j] ** 2)) for x, use in zip(explained, uses, strict=True)]
        means = [_means(e[:, j], use[:, j]) for e, use in zip(residuals, uses, strict=True)]
        count = max(1, sum(len(mean) for mean, _ in means))
        slow = float(np.sqrt(sum(float(np.sum(mean**2)) for mean, _ in means) / count))
        noise = float(np.sqrt(sum(sizes) / max(rows, 1)))
        lasting = slow * float(np.mean([root for _, root in means])) / noise if noise > 0 else 0.0
        share = slow / float(np.sqrt(max(sum(whole), 1e-300) / max(rows, 1)))
        figures.append({"signal": name, "rms": noise, "lasting": lasting})
        if lasting > REMEMBERS and share > MATTERS:
            told.append(f"{name} ({100 * share:.2g} %, {lasting:.1f} times what noise leaves of its means)")
    if not told:
        return "", {"residuals": figures}
    more = "" if len(told) <= 3 else f" and {len(told) - 3} more"
    message = (
        f"warning: the residuals of {', '.join(told[:3])}{more} are no noise: the controller, its delay, its "
        "torque limit or the friction is not what was simulated, and the parameters are biased by it"
    )
    return message, {"residuals": figures, "loop_doubtful": True}
