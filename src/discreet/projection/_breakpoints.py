"""What the two implementations of the solver have in common, so that they return the same slope, bit for bit.

G(a) = sum_x clip(a p_x, lower_x, upper_x) is linear between the breakpoints lower_x/p_x and upper_x/p_x. Newton's steps on it
are kept between the largest slope known to be too small and the smallest known to be too large, so they cannot go round in
circles; after `PATIENT` steps every other one halves the distance between the two (on a logarithmic scale, where it is at
most 2^11), so that `NEWTON_STEPS` of them bring it down to neighbouring floats: the slope is then right whatever Newton does.

Floating-point sums depend on their order, so the order is part of the definition: numbers are taken in blocks of `BLOCK`, which
are added one after the other; within a block number i goes to lane i mod `LANES`, in order, and the lanes are then added by
halves: 0 + 4, 1 + 5, 2 + 6, 3 + 7, then 0 + 2, 1 + 3, then 0 + 1. Zeros after the last number change nothing.
"""

NEWTON_STEPS = 200
PATIENT = 40  # steps after which every other one is a bisection
SETTLED = 1e-15  # relative change of the slope below which the same set is being solved again

NEGLIGIBLE = 1e-280  # a smaller mass counts as none: a bound divided by it, in units of 2^-62, would overflow
ROUNDING = 1e-14  # what summation may add to a mass
BEYOND = 2.0 / NEGLIGIBLE  # larger than every breakpoint
PAST = 2.0**-50  # a step this far beyond a breakpoint is beyond it in floating point too
FARTHEST = 1e100  # how far past a breakpoint a step may go

LANES = 8
BLOCK = 1 << 10
NARROW = 1 << 12  # numbers that a vector passes over faster than they are sorted out
