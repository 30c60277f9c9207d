"""Rows of numbers in text, as bytes: what is written plainly is read here, any other line is left to the caller.

Eight digits are taken at a time, as one word (Lemire, "Number parsing at a gigabyte per second", 2021, 3). So the text
has to end with a line end and `PADDING` bytes more, which nobody counts.
"""

import numpy as np

from ...compiled import kernel
from .decimals import INFINITE, LEAST, MOST, nearest

NEWLINE, TAB, RETURN, SPACE, QUOTE = ord("\n"), ord("\t"), ord("\r"), ord(" "), ord('"')
PADDING = 16
PLAIN, BLANK = -1, -2
MOST_DIGITS = 19  # that a word of 64 bits holds, whichever they are
_NOTHING, _TEN = np.uint64(0), np.uint64(10)
_NOUGHT = np.uint64(ord("0"))
_TENS = 10 ** np.arange(9, dtype=np.uint64)
_ZEROS, _ABOVE_NINE = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676)
_ONES = np.uint64(0x0101010101010101)
_PAIRS = np.uint64(0x000000FF000000FF)
_BY_100_AND_1E6 = np.uint64(100 + (1_000_000 << 32))
_BY_1_AND_1E4 = np.uint64(1 + (10_000 << 32))


@kernel
def _eight(text, i):
    """Eight bytes as one word, the first the lowest."""
    at = np.uint64(i)  # an unsigned index cannot count from the end, so that all is one load
    word = np.uint64(text[at])
    for k in range(1, 8):
        word |= np.uint64(text[at + np.uint64(k)]) << np.uint64(8 * k)
    return word


@kernel
def _value(digits):
    """The number that eight digits make, each a byte of 0 … 9: pairs of them first, then fours, then all."""
    digits = digits * _TEN + (digits >> np.uint64(8))
    ends = (digits & _PAIRS) * _BY_100_AND_1E6
    return (ends + ((digits >> np.uint64(16)) & _PAIRS) * _BY_1_AND_1E4) >> np.uint64(32)


@kernel
def _leading(word):
    """The number that the digits at the start of eight bytes write, and how many they are."""
    word ^= _ZEROS
    others = ((word | (word + _ABOVE_NINE)) >> np.uint64(7)) & _ONES  # right up to the first that is 1
    before = (others & (~others + np.uint64(1))) - np.uint64(1)
    count = ((before & _ONES) * _ONES) >> np.uint64(56) if others else np.uint64(8)
    # The digits move up, zeros before them.
    moved = word << (np.uint64(64) - np.uint64(8) * count) if count else _NOTHING
    return _value(moved), np.int64(count)


@kernel
def _long(text, i, stop, decimal):
    """As many of the digits as a word holds, the power of ten they are worth, and whether others than 0 follow."""
    w, kept, power, more, fraction = _NOTHING, 0, 0, False, False
    for k in range(i, stop):
        if text[k] == decimal:
            fraction = True
            continue
        digit = np.uint64(text[k]) - _NOUGHT
        if kept < MOST_DIGITS:
            w = w * _TEN + digit
            kept += w != _NOTHING  # zeros in front take no room
            power -= fraction
        else:
            more = more or digit != _NOTHING
            power += not fraction
    return w, power, more


@kernel
def _exponent(text, i):
    """The power of ten that stands behind an e, whether one does, and where it ends."""
    minus = text[i] == ord("-")
    i += minus | (text[i] == ord("+"))
    value, count = _leading(_eight(text, i))
    power = -np.int64(value) if minus else np.int64(value)
    return power, 0 < count < 8, i + count


@kernel
def _past_blanks(text, i, delimiter):
    while (text[i] == SPACE or text[i] == TAB or text[i] == RETURN) and text[i] != delimiter:
        i += 1
    return i


@kernel
def _past_entry(text, i, delimiter):
    """Where an entry that nobody asked for ends, and whether it is a plain one."""
    while text[i] != delimiter and text[i] != NEWLINE:
        if text[i] == QUOTE or text[i] == 0:
            return i, False
        if delimiter < 0 and _past_blanks(text, i, delimiter) > i:
            return i, True
        i += 1
    return i, True


@kernel
def _row(text, i, delimiter, decimal, places, width, powers, out):
    """Read the row that begins at i; whether all of it is plain, and where the reading stopped.

    Numbers are read in the loop itself: Numba counts references to every array that a function of some length is
    given, which takes longer than reading a number does.
    """
    for column in range(places.size):
        i = _past_blanks(text, i, delimiter)
        if places[column] < 0:
            i, plain = _past_entry(text, i, delimiter)
        else:
            minus = text[i] == ord("-")
            i += minus | (text[i] == ord("+"))
            begun, w, power, more = i, _NOTHING, 0, False
            digit = np.uint64(text[i]) - _NOUGHT
            while digit < _TEN:  # few of them, mostly
                w = w * _TEN + digit
                i += 1
                digit = np.uint64(text[i]) - _NOUGHT
            digits = i - begun
            if text[i] == decimal:
                i += 1
                count = 8
                while count == 8:
                    value, count = _leading(_eight(text, i))
                    w = w * _TENS[count] + value
                    i += count
                    power -= count
                digits -= power
            plain = digits > 0
            if digits > MOST_DIGITS:
                w, power, more = _long(text, begun, i, decimal)
            if text[i] == ord("e") or text[i] == ord("E"):
                further, written, i = _exponent(text, i + 1)
                power += further
                plain = plain and written
            power = min(max(power, LEAST), MOST)
            high, low = powers[power - LEAST, 0], powers[power - LEAST, 1]
            bits = nearest(w, power, high, low)
            if bits == INFINITE or (more and nearest(w + np.uint64(1), power, high, low) != bits):
                plain = False
            out[places[column]] = bits | (np.uint64(minus) << np.uint64(63))
        if not plain:
            return False, i
        after = i
        i = _past_blanks(text, i, delimiter)
        if text[i] == NEWLINE:
            return column + 1 == places.size or column + 1 == width, i
        if delimiter >= 0 and text[i] == delimiter:
            i += 1
        elif delimiter >= 0 or i == after:
            return False, i
    return False, i


@kernel
def first_line_from(text, i):
    """Where the first line begins that begins at i or later."""
    if i > 0:
        i -= 1
        while text[i] != NEWLINE:
            i += 1
        i += 1
    return i


@kernel
def lines_in(text, start, stop):
    """How many lines end there."""
    count = 0
    for i in range(start, stop):
        count += text[i] == NEWLINE
    return count


@kernel
def read_lines(text, start, stop, delimiter, decimal, places, width, powers, bits, kind):
    """Read the lines from start to stop, each a row.

    Entry k of a row becomes `bits[row, places[k]]`, or nothing where that place is below 0. `kind` is PLAIN for rows
    that were read, BLANK for empty lines, and where the line begins for all others: comments, quotes, a width that is
    neither that of `places` nor `width`, entries that are no finite number. A delimiter below 0 stands for blanks.
    """
    row, i = 0, start
    while i < stop:
        kind[row] = BLANK
        begun = i
        i = _past_blanks(text, i, -1)
        if text[i] != NEWLINE:
            plain = text[i] != ord("#") and text[i] != ord("%") and text[i] != ord("/")
            if plain:
                plain, i = _row(text, begun, delimiter, decimal, places, width, powers, bits[row])
            while text[i] != NEWLINE:
                i += 1
            kind[row] = PLAIN if plain else begun
        i += 1
        row += 1
