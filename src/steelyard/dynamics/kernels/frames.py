"""Poses, Jacobians and their rates of a point fixed in a link, sample by sample."""

from ...compiled import kernel
from .kinematics import dof_rates, jacobian, jacobian_rate, load_rates, place, velocities
from .lanes import LANES, OMEGA, ORIGIN, RATE, ROTATION, VELOCITY, get, get_rotation, lanes_from, of_link, scratch
from .vector import add, cross, turn, vector


@kernel
def poses(links, dofs, link, offset, q, position, rotation):
    """World position of the point, and the link's rotation."""
    x, y, p = scratch(links, dofs)
    own = of_link(link)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        for s in range(count):
            R = get_rotation(x, own + ROTATION, s)
            point = add(get(x, own + ORIGIN, s), turn(R, vector(offset)))
            for k in range(3):
                position[t + s, k] = point[k]
                for j in range(3):
                    rotation[t + s, k, j] = R[3 * k + j]


@kernel
def jacobians(links, dofs, link, offset, q, J):
    """The 6×n Jacobian of the point: velocity above angular velocity."""
    x, y, p = scratch(links, dofs)
    own = of_link(link)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        for s in range(count):
            point = add(get(x, own + ORIGIN, s), turn(get_rotation(x, own + ROTATION, s), vector(offset)))
            jacobian(dofs, links[link].last_dof, point, y, s, J[t + s])


@kernel
def jacobian_rates(links, dofs, link, offset, q, qd, J):
    """d/dt of `jacobians`."""
    x, y, p = scratch(links, dofs)
    own = of_link(link)
    for t in range(0, q.shape[0], LANES):
        count = lanes_from(t, q.shape[0])
        place(links, q, t, count, x, y, p)
        load_rates(dofs, qd, RATE, t, count, y)
        velocities(links, x, y, count)
        dof_rates(links, dofs, x, y, count)
        for s in range(count):
            arm = turn(get_rotation(x, own + ROTATION, s), vector(offset))
            speed = add(get(x, own + VELOCITY, s), cross(get(x, own + OMEGA, s), arm))
            point = add(get(x, own + ORIGIN, s), arm)
            jacobian_rate(dofs, links[link].last_dof, point, speed, y, s, J[t + s])
