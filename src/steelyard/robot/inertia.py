"""The inertia of a rigid body in its several forms, and the way from each to the others.

The form everything else uses is the 10-vector of `parameters`, [m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]: torque is
linear in it, and bodies in one frame add. The pseudo-inertia J is the form in which being physical is one condition,
J ⪰ 0; the log-Cholesky form has no condition left at all. Functions take arrays (..., 10).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ModelError

Array = NDArray[np.float64]

EXTENTS = ("point mass", "rod", "plate", "solid")  # a body by the number of dimensions it extends in

# A point mass, a rod and a plate lie exactly on the boundary of what is possible, and figures fall on either side.
# Relative to the trace of the inertia about the centre of mass: published figures and single precision carry about
# seven digits. Relative to m|com|², which was subtracted to get there: iterative solvers leave about nine digits.
BOUNDARY_TOLERANCE = 1e-6
SHIFT_TOLERANCE = 1e-9
# Below this part of the second moments about the origin, float64 cannot tell a thickness from rounding.
ROUNDING = 1e-14

# Where the six tensor entries of the 10-vector sit in a 3x3 matrix, and the way back.
_ROW, _COL = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 2])
_SLOT = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def _floats(values: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(str(size) for size in shape)
        raise ModelError(f"{what} must have shape (..., {wanted}), not {array.shape}")
    return array


def _where(bad: ArrayLike) -> str:
    """Which of several bodies is meant, for a message; nothing to add when there is only one."""
    return " " + ", ".join(str(k) for k in np.argwhere(bad)[0]) if np.ndim(bad) else ""


def _finite_body(parameters: ArrayLike) -> Array:
    """Checked where eigenvalues are asked for, which of NaN there are none; elsewhere NaN just passes through."""
    array = _floats(parameters, (10,), "body parameters")
    if np.any(bad := ~np.isfinite(array).all(axis=-1)):
        raise ModelError(f"body{_where(bad)} has a parameter that is not a finite number: {array[bad][0].tolist()}")
    return array


def _trace_minus(matrix: Array, factor: float) -> Array:
    """factor·tr(A)·1 − A: with ½ it takes an inertia tensor to second moments of mass, with 1 it takes them back."""
    trace: Array = np.trace(matrix, axis1=-2, axis2=-1)[..., None, None]
    return factor * trace * np.eye(3) - matrix


def _about(com: Array) -> Array:
    """The inertia of a unit mass at `com` about the origin, |c|²1 − c cᵀ."""
    return _trace_minus(com[..., :, None] * com[..., None, :], 1.0)


def _factor(eta: Array) -> Array:
    U = np.zeros((*eta.shape[:-1], 4, 4))
    U[..., range(3), range(3)] = np.exp(eta[..., 1:4])
    U[..., 0, 1], U[..., 1, 2], U[..., 0, 2] = eta[..., 4], eta[..., 5], eta[..., 6]
    U[..., :3, 3] = eta[..., 7:]
    U[..., 3, 3] = 1.0
    return np.exp(eta[..., 0])[..., None, None] * U


def _whiten(symmetric: Array, nominal: ArrayLike) -> Array:
    """U⁻¹ A U⁻ᵀ, where U Uᵀ is the nominal's pseudo-inertia: the nominal becomes the identity."""
    try:
        factor = np.linalg.inv(_factor(log_cholesky(nominal)))
    except ModelError as error:
        raise ModelError(f"the nominal cannot be divided by: {error}") from None
    return factor @ symmetric @ np.swapaxes(factor, -1, -2)


def inertia_tensor(parameters: ArrayLike) -> Array:
    """The 3x3 inertia tensor about the body origin; off-diagonal entries carry no sign flip, I[0, 1] = Ixy."""
    return _floats(parameters, (10,), "body parameters")[..., 4:][..., _SLOT]


def from_inertia_tensor(mass: ArrayLike, moment: ArrayLike, tensor: ArrayLike) -> Array:
    """The 10-vector of mass, first moments m·com and the inertia tensor about the body origin."""
    moment, tensor = _floats(moment, (3,), "first moments"), _floats(tensor, (3, 3), "the inertia tensor")
    mass = np.asarray(mass, dtype=np.float64)
    lead = np.broadcast_shapes(mass.shape, moment.shape[:-1], tensor.shape[:-2])
    parameters = np.empty((*lead, 10))
    parameters[..., 0] = mass
    parameters[..., 1:4] = moment
    parameters[..., 4:] = 0.5 * (tensor[..., _ROW, _COL] + tensor[..., _COL, _ROW])
    return parameters


def mass_com_inertia(parameters: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass, centre of mass and the inertia tensor about the centre of mass.

    I_com = I_origin − m(|c|²1 − c cᵀ). A body of ten zeros (a frame that is welded on) has its centre at its origin.
    """
    parameters = _floats(parameters, (10,), "body parameters")
    mass, moment = parameters[..., 0].copy(), parameters[..., 1:4]
    if np.any(bad := (mass == 0) & np.any(moment != 0, axis=-1)):
        raise ModelError(f"body{_where(bad)} has first moments but no mass, so no centre of mass; give it a mass")
    com = moment / np.where(mass == 0, 1.0, mass)[..., None]
    return mass, com, inertia_tensor(parameters) - mass[..., None, None] * _about(com)


def from_mass_com_inertia(mass: ArrayLike, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """The 10-vector of mass, centre of mass and the inertia tensor about the centre of mass."""
    mass, com = np.asarray(mass, dtype=np.float64), _floats(com, (3,), "the centre of mass")
    inertia_com = _floats(inertia_com, (3, 3), "the inertia tensor")
    return from_inertia_tensor(mass, mass[..., None] * com, inertia_com + mass[..., None, None] * _about(com))


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """The 4x4 pseudo-inertia, second moments of mass in homogeneous coordinates.

    J = [[Σ, h], [hᵀ, m]],  Σ = ½tr(I)1 − I = ∫ x xᵀ dm;  J ≻ 0 if and only if some distribution of mass in space has
    these parameters (Wensing, Kim, Slotine, "Linear matrix inequalities for physically consistent inertial parameter
    identification", RA-L 2018).
    """
    parameters = _floats(parameters, (10,), "body parameters")
    J = np.empty((*parameters.shape[:-1], 4, 4))
    J[..., :3, :3] = _trace_minus(inertia_tensor(parameters), 0.5)
    J[..., :3, 3] = J[..., 3, :3] = parameters[..., 1:4]
    J[..., 3, 3] = parameters[..., 0]
    return J


def from_pseudo_inertia(J: ArrayLike) -> Array:
    """The 10-vector of a pseudo-inertia, I = tr(Σ)1 − Σ; linear in J, so it takes derivatives to derivatives."""
    J = _floats(J, (4, 4), "the pseudo-inertia")
    moment = 0.5 * (J[..., :3, 3] + J[..., 3, :3])
    return from_inertia_tensor(J[..., 3, 3], moment, _trace_minus(J[..., :3, :3], 1.0))


# J = Σ_k θ_k B_k, the linear map that a semidefinite program needs. (10, 4, 4)
PSEUDO_BASIS: Array = pseudo_inertia(np.eye(10))
PSEUDO_BASIS.setflags(write=False)


def from_log_cholesky(eta: ArrayLike) -> Array:
    """The 10-vector of any ten numbers (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3), always physical.

    J = U Uᵀ,  U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]
    (Rucker, Wensing, "Smooth parameterization of rigid-body inertia", RA-L 2022).
    """
    U = _factor(_floats(eta, (10,), "log-Cholesky parameters"))
    return from_pseudo_inertia(U @ np.swapaxes(U, -1, -2))


def log_cholesky(parameters: ArrayLike) -> Array:
    """The ten log-Cholesky parameters of a physical body: e^2α = m, t = com, and A Aᵀ = Σ_com / m, A upper triangular.

    A thin body (point mass, rod, plate) has none: its d is −∞.
    """
    parameters = _finite_body(parameters)
    if np.any(bad := ~(parameters[..., 0] > 0)):
        raise ModelError(f"body{_where(bad)} has no log-Cholesky form: its mass is {parameters[..., 0][bad][0]:.4g} kg")
    # About the centre of mass J is diag(Σ_com, m), which is where a far-off body keeps its digits.
    mass, com, inertia_com = mass_com_inertia(parameters)
    second = _trace_minus(inertia_com, 0.5)
    thinnest = np.linalg.eigvalsh(second)[..., 0]
    floor = ROUNDING * (np.trace(second, axis1=-2, axis2=-1) + mass * np.sum(com**2, axis=-1))
    if np.any(bad := thinnest <= floor):
        raise ModelError(
            f"body{_where(bad)} has no log-Cholesky form: the second moment of its mass along its thinnest direction "
            f"is {thinnest[bad][0]:.3g} kg·m² and must be greater than 0 (a plate, a rod or a point mass is too thin)"
        )
    # numpy factors into lower triangles: turn the axes round, factor, turn them back.
    A = np.linalg.cholesky((second / mass[..., None, None])[..., ::-1, ::-1])[..., ::-1, ::-1]
    eta = np.empty_like(parameters)
    eta[..., 0] = 0.5 * np.log(mass)
    eta[..., 1:4] = np.log(np.diagonal(A, axis1=-2, axis2=-1))
    eta[..., 4], eta[..., 5], eta[..., 6] = A[..., 0, 1], A[..., 1, 2], A[..., 0, 2]
    eta[..., 7:] = com
    return eta


def log_cholesky_jacobian(eta: ArrayLike) -> Array:
    """∂θ/∂η, (..., 10, 10): the 10-vector's rate of change with each log-Cholesky parameter.

    dJ = dU Uᵀ + U dUᵀ, where U scales with e^α and each other parameter moves a single entry of it.
    """
    eta = _floats(eta, (10,), "log-Cholesky parameters")
    U, scale = _factor(eta), np.exp(eta[..., 0])
    dU = np.zeros((*eta.shape[:-1], 10, 4, 4))
    dU[..., 0, :, :] = U
    for k in range(3):
        dU[..., 1 + k, k, k] = U[..., k, k]
        dU[..., 7 + k, k, 3] = scale
    for k, (i, j) in zip((4, 5, 6), ((0, 1), (1, 2), (0, 2)), strict=True):
        dU[..., k, i, j] = scale
    half = dU @ np.swapaxes(U, -1, -2)[..., None, :, :]
    return np.swapaxes(from_pseudo_inertia(half + np.swapaxes(half, -1, -2)), -1, -2)


def move(parameters: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """The same body seen from another frame: parameters in B become parameters in A, where x_A = R x_B + p.

    J_A = T J_B Tᵀ,  T = [[R, p], [0, 1]]. In one frame, the parameters of bodies that are fixed together add.
    """
    rotation = _floats(rotation, (3, 3), "the rotation")
    translation = _floats(translation, (3,), "the translation")
    error = np.abs(rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3)).max(initial=0.0)
    if not error < 1e-6 or np.any(np.linalg.det(rotation) < 0):
        raise ModelError(f"the rotation is not one: R Rᵀ is {error:.2g} off the identity, or R mirrors; normalise it")
    T = np.zeros((*np.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rotation, translation, 1.0
    return from_pseudo_inertia(T @ pseudo_inertia(parameters) @ np.swapaxes(T, -1, -2))


def principal_inertia(parameters: ArrayLike) -> tuple[Array, Array]:
    """Principal moments about the centre of mass, ascending, and their axes as the columns of a rotation.

    I_com = R diag(moments) Rᵀ.
    """
    _, _, inertia_com = mass_com_inertia(_finite_body(parameters))
    moments, axes = np.linalg.eigh(inertia_com)
    axes[..., 2] *= np.sign(np.linalg.det(axes))[..., None]
    return moments, axes


def boundary_tolerance(parameters: ArrayLike) -> Array:
    """How far a principal moment may miss a condition and still be on the boundary, kg·m²; see BOUNDARY_TOLERANCE."""
    mass, com, inertia_com = mass_com_inertia(parameters)
    spread = np.abs(np.trace(inertia_com, axis1=-2, axis2=-1))
    return BOUNDARY_TOLERANCE * spread + SHIFT_TOLERANCE * np.abs(mass) * np.sum(com**2, axis=-1)


def extent(parameters: ArrayLike) -> NDArray[np.int64]:
    """In how many dimensions a body extends, to within the boundary tolerance: 0 … 3, named by `EXTENTS`."""
    parameters = _finite_body(parameters)
    second = np.linalg.eigvalsh(_trace_minus(mass_com_inertia(parameters)[2], 0.5))
    return np.sum(2 * second > boundary_tolerance(parameters)[..., None], axis=-1)


def equivalent_ellipsoid(parameters: ArrayLike) -> tuple[Array, Array, Array]:
    """The ellipsoid of uniform density with the same parameters: centre, semi-axes in m, and axes as columns.

    Σ_com = (m/5) R diag(a²) Rᵀ. The order is that of `principal_inertia`, longest first. A thin body has semi-axes of
    zero; an impossible one has NaN, for no ellipsoid is like it.
    """
    parameters = _finite_body(parameters)
    mass, com, inertia_com = mass_com_inertia(parameters)
    moments, axes = principal_inertia(parameters)
    second = 0.5 * np.trace(inertia_com, axis1=-2, axis2=-1)[..., None] - moments
    second = np.where(np.abs(2 * second) <= boundary_tolerance(parameters)[..., None], 0.0, second)
    possible = (mass[..., None] > 0) & (second >= 0)
    squared = np.where(possible, 5 * second, np.nan) / np.where(mass > 0, mass, 1.0)[..., None]
    return com, np.sqrt(squared), axes


def divergence(parameters: ArrayLike, nominal: ArrayLike) -> Array:
    """The entropic (log-det Bregman) divergence from a nominal body, zero only where both are equal; ∞ off the cone.

    d(J, J0) = −log|J| + log|J0| + tr(J0⁻¹ J) − 4, the same in every frame and every unit (Lee, Wensing, Park,
    "Geometric robot dynamic identification: a convex programming approach", T-RO 2020).
    """
    # With J0 = U Uᵀ the eigenvalues λ of U⁻¹ J U⁻ᵀ carry everything: d = Σ (λ − 1 − log λ), each term ≥ 0.
    ratios = np.linalg.eigvalsh(_whiten(pseudo_inertia(_finite_body(parameters)), nominal))
    inside = ratios > 0
    excess = ratios - 1
    terms = np.where(inside, excess - np.log1p(np.where(inside, excess, 0.0)), np.inf)
    return np.sum(terms, axis=-1)


def pullback_metric(nominal: ArrayLike) -> Array:
    """The constant metric on 10-vectors that measures a deviation in proportion to the nominal body, (..., 10, 10).

    M_ij = tr(J0⁻¹ B_i J0⁻¹ B_j), the Hessian of `divergence` at the nominal; δᵀMδ has no unit and is the same in every
    frame (Lee, Park, "A geometric algorithm for robust multibody inertial parameter identification", RA-L 2018).
    """
    whitened = _whiten(PSEUDO_BASIS, np.asarray(nominal)[..., None, :])
    return np.einsum("...iab,...jab->...ij", whitened, whitened)


def random_inertias(
    rng: np.random.Generator, count: int, mass_range: tuple[float, float] = (0.5, 5.0), size: float = 0.2
) -> Array:
    """Physical bodies by construction, (count, 10): clouds of eight point masses within `size` m of the body origin.

    J = Σ m_i x̃_i x̃_iᵀ,  x̃ = (x, 1). Masses are log-uniform over `mass_range` in kg; some bodies are long, some flat.
    """
    low, high = mass_range
    if not 0 < low <= high or not size > 0:
        raise ModelError(f"need 0 < mass and 0 < size, not masses {low:g} … {high:g} kg and size {size:g} m")
    points = 8
    mass = np.exp(rng.uniform(np.log(low), np.log(high), count))
    share = rng.dirichlet(np.full(points, 2.0), count)
    # A centre and a spread for each axis, so that no coordinate leaves ±size/√3 and no point the ball of radius size.
    reach = size / np.sqrt(3.0)
    spread = reach * rng.uniform(0.1, 0.6, (count, 1, 3))
    centre = (reach - spread) * rng.uniform(-1.0, 1.0, (count, 1, 3))
    x = np.ones((count, points, 4))
    x[..., :3] = centre + spread * rng.uniform(-1.0, 1.0, (count, points, 3))
    return from_pseudo_inertia(np.einsum("nk,nka,nkb->nab", mass[:, None] * share, x, x))
