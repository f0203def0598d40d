"""Where a ball's centre or a capsule's axis comes nearest to a triangle of the ground."""
# Kernels are Python in form only: Warp compiles them, checkers cannot follow.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportReturnType=false, reportCallIssue=false

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.func
def nearest_on_triangle(p: wp.vec3, a: wp.vec3, b: wp.vec3, c: wp.vec3) -> wp.vec3:
    """Return the point of a triangle that is nearest to p."""
    ab, ac, ap = b - a, c - a, p - a
    d1, d2 = wp.dot(ab, ap), wp.dot(ac, ap)
    if d1 <= 0.0 and d2 <= 0.0:
        return a
    d3, d4 = wp.dot(ab, p - b), wp.dot(ac, p - b)
    if d3 >= 0.0 and d4 <= d3:
        return b
    beyond_ab = d1 * d4 - d3 * d2
    if beyond_ab <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return a + d1 / (d1 - d3) * ab
    d5, d6 = wp.dot(ab, p - c), wp.dot(ac, p - c)
    if d6 >= 0.0 and d5 <= d6:
        return c
    beyond_ac = d5 * d2 - d1 * d6
    if beyond_ac <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return a + d2 / (d2 - d6) * ac
    beyond_bc = d3 * d6 - d5 * d4
    if beyond_bc <= 0.0 and d4 >= d3 and d5 >= d6:
        return b + (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b)
    total = beyond_ab + beyond_ac + beyond_bc
    return a + beyond_ac / total * ab + beyond_ab / total * ac


@wp.func
def nearest_share(p: wp.vec3, way: wp.vec3, a: wp.vec3, edge: wp.vec3) -> float:
    """Return how far along p + s way, s in [0, 1], it is nearest to a + t edge."""
    between = p - a
    ww, ee, we = wp.dot(way, way), wp.dot(edge, edge), wp.dot(way, edge)
    wb, eb = wp.dot(way, between), wp.dot(edge, between)
    slack = ww * ee - we * we
    s = float(0.0)
    if slack > 1e-12:
        s = wp.clamp((we * eb - wb * ee) / slack, 0.0, 1.0)
    t = (we * s + eb) / ee
    if t < 0.0 or t > 1.0:
        s = wp.clamp((we * wp.clamp(t, 0.0, 1.0) - wb) / ww, 0.0, 1.0)
    return s


@wp.func
def leftward(edge: wp.vec3, way: wp.vec3) -> float:
    """Return how far to the left of an edge, seen from above, a way leads."""
    return edge[0] * way[1] - edge[1] * way[0]


@wp.func
def touch_triangle(
    p: wp.vec3, way: wp.vec3, a: wp.vec3, b: wp.vec3, c: wp.vec3
) -> tuple[bool, float, wp.vec3, wp.vec3]:
    """Find where a core comes nearest to a triangle of the surface.

    Args:
        p: Where the core begins.
        way: Where it leads from there; zero for a ball.
        a, b, c: Corners, anticlockwise from above.

    Returns:
        Whether the triangle is what it meets there; how far off it is, less than 0 under
        the ground; the point of the core; and the direction out of the ground.
    """
    up = wp.normalize(wp.cross(b - a, c - a))
    # The part of the core that lies over or under the triangle, as shares of its way.
    first, last = float(0.0), float(1.0)
    corner, edge = a, b - a
    for side in range(3):
        if side == 1:
            corner, edge = b, c - b
        if side == 2:
            corner, edge = c, a - c
        inside, change = leftward(edge, p - corner), leftward(edge, way)
        if change > 0.0:
            first = wp.max(first, -inside / change)
        elif change < 0.0:
            last = wp.min(last, -inside / change)
        elif inside < 0.0:
            last = -1.0
    if first <= last:
        lowest = p + wp.where(wp.dot(up, way) > 0.0, first, last) * way
        height = wp.dot(up, lowest - a)
        if height < 0.0:
            return True, height, lowest, up
    core = p
    foot = nearest_on_triangle(p, a, b, c)
    least = wp.length_sq(p - foot)
    if wp.length_sq(way) > 0.0:
        for candidate in range(4):
            share = float(1.0)
            if candidate == 0:
                share = nearest_share(p, way, a, b - a)
            if candidate == 1:
                share = nearest_share(p, way, b, c - b)
            if candidate == 2:
                share = nearest_share(p, way, c, a - c)
            point = p + share * way
            on = nearest_on_triangle(point, a, b, c)
            distance = wp.length_sq(point - on)
            if distance < least:
                least, core, foot = distance, point, on
    distance = wp.sqrt(least)
    # Behind this triangle's face, but not under it, another one is nearer.
    if distance < 1e-9 or wp.dot(up, core - foot) < 0.0:
        return False, 0.0, core, up
    return True, distance, core, (core - foot) / distance
