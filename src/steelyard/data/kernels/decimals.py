"""The double nearest to w · 10^q, in integers alone.

The product of w with the first 128 bits of 5^q decides every case (Lemire, "Number parsing at a gigabyte per second",
Software: Practice and Experience 51, 2021; that nothing is left to decide otherwise: Mushtak and Lemire, "Fast number
parsing without fallback", the same 53, 2023).
"""

import numpy as np

from ...compiled import kernel

# Powers of ten: below all are 0 (a word of digits and 10^-343 round to it), above all are infinite.
LEAST, MOST = -343, 309
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_UNDECIDED = np.uint64(0x1FF)  # the bits beyond 52 + 3: all ones may carry
_TOP = np.uint64(63)
_SHORT = np.uint64(9)  # 64 − 52 − 3
_HIDDEN = np.uint64(52)
_CARRIED = np.uint64(1 << 53)
_FRACTION = np.uint64((1 << 52) - 1)
INFINITE = np.uint64(0x7FF << 52)


def powers_of_five() -> np.ndarray:
    """The first 128 bits of 5^q, (q, 2): from 5^LEAST to 5^MOST, cut off below for q >= 0 and above for q < 0."""
    table = np.empty((MOST - LEAST + 1, 2), dtype=np.uint64)
    for q in range(LEAST, MOST + 1):
        if q < 0:
            power = 5**-q
            bits = power.bit_length() + 127 if q >= -27 else 2 * power.bit_length() + 128
            c = (1 << bits) // power + 1
        else:
            c = 5**q
        c = c << (128 - c.bit_length()) if c.bit_length() < 128 else c >> (c.bit_length() - 128)
        table[q - LEAST] = c >> 64, c & 0xFFFFFFFFFFFFFFFF
    return table


@kernel
def _product(a, b):
    """The upper and the lower word of a · b."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low, middle = a0 * b0, a1 * b0
    carried = (low >> _HALF) + (middle & _LOW) + a0 * b1
    return a1 * b1 + (middle >> _HALF) + (carried >> _HALF), a * b


@kernel
def _leading_zeros(w):
    count, shift = np.uint64(0), np.uint64(32)
    while shift:
        if w >> (np.uint64(64) - shift) == _ZERO:
            count += shift
            w = w << shift
        shift >>= _ONE
    return count


@kernel
def nearest(w, q, five, more_of_five):
    """The bits of the double nearest to w · 10^q, ties to even, LEAST <= q <= MOST; with the row of 5^q."""
    if w == _ZERO:
        return _ZERO
    zeros = _leading_zeros(w)
    w = w << zeros
    high, low = _product(w, five)
    if high & _UNDECIDED == _UNDECIDED:
        more, _ = _product(w, more_of_five)
        low += more
        if low < more:
            high += _ONE
    upper = high >> _TOP
    m = high >> (upper + _SHORT)
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(zeros)
    if exponent <= 0:  # among the subnormal numbers
        if exponent <= -63:
            return _ZERO
        m = m >> np.uint64(1 - exponent)
        return (m + (m & _ONE)) >> _ONE  # a carry into 2^52 makes the first normal number
    if low <= _ONE and -4 <= q <= 23 and m & np.uint64(3) == _ONE and m << (upper + _SHORT) == high:
        m -= _ONE  # just half way
    m = (m + (m & _ONE)) >> _ONE
    if m >= _CARRIED:
        m = m >> _ONE
        exponent += 1
    if exponent >= 0x7FF:
        return INFINITE
    return (m & _FRACTION) | (np.uint64(exponent) << _HIDDEN)
