"""Parallel filtering: against SciPy's FIR design and filters, whole and in blocks."""

import itertools

import numpy as np
import pytest
import scipy.signal as ss
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.data.decimation import GROUP, Decimation


def test_taps_are_those_of_scipy_for_the_same_window():
    h = Decimation(20.0, 10).taps(1000.0)
    expected = ss.firwin(len(h), 20.0, window=("kaiser", ss.kaiser_beta(60.0)), fs=1000.0)
    # ours is scaled in the same way (unit gain at 0); rounding only
    np.testing.assert_allclose(h, expected, atol=1e-15)
    np.testing.assert_array_equal(h, h[::-1])


@pytest.mark.parametrize("factor", [1, 7, 40])
def test_decimation_is_a_convolution_of_which_every_kth_row_is_taken(factor, rng):
    x = rng.normal(size=(1500, 3))
    method = Decimation(10.0, factor)
    expected = ss.oaconvolve(x, method.taps(1000.0)[:, None], mode="valid", axes=0)[::factor]
    y = method.apply(x, 1000.0)
    np.testing.assert_allclose(y, expected, atol=1e-13)  # rounding of a sum of 365 terms of order one
    assert len(method.rows(len(x), 1000.0)) == len(y)


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, 1200), max_size=12), factor=st.integers(1, 50), length=st.integers(0, 1200))
def test_blocks_do_not_change_a_single_bit(cuts, factor, length):
    x = np.random.default_rng(3).normal(size=(1200, 5))[:length]
    method = Decimation(10.0, factor)
    once = method.stream(1000.0, 5)
    whole = np.concatenate([once.push(x), once.finish()])
    stream = method.stream(1000.0, 5)
    edges = [0, *sorted(min(cut, length) for cut in cuts), length]
    parts = [stream.push(x[a:b]) for a, b in itertools.pairwise(edges)]
    pieces = np.concatenate([*parts, stream.finish()])
    np.testing.assert_array_equal(pieces, whole)
    assert len(whole) == len(method.rows(length, 1000.0))


def test_an_output_belongs_to_the_time_of_its_row():
    t = np.arange(4000) / 1000.0
    x = np.sin(2 * np.pi * 2.0 * t)[:, None]
    method = Decimation(20.0, 20)
    at = t[method.rows(len(t), 1000.0)]
    # 60 dB: the pass band is flat to a thousandth
    np.testing.assert_allclose(method.apply(x, 1000.0)[:, 0], np.sin(2 * np.pi * 2.0 * at), atol=1e-3)
    assert method.stream(1000.0, 1).offset == method.rows(len(t), 1000.0)[0]


def test_what_lies_above_the_cut_off_is_gone():
    t = np.arange(4000) / 1000.0
    x = np.sin(2 * np.pi * 35.0 * t)[:, None]  # the stop band begins at one and a half times 20 Hz
    assert np.abs(Decimation(20.0, 10).apply(x, 1000.0)).max() < 1e-3  # 60 dB


def test_memory_of_a_stream_is_a_window(rng):
    stream = Decimation(20.0, 20).stream(1000.0, 4)
    for _ in range(30):
        stream.push(rng.normal(size=(700, 4)))
        assert len(stream._kept) <= stream._window


def test_outputs_on_unused_rows_are_marked():
    use = np.ones((2000, 2))
    use[700:1300, 1] = 0
    method = Decimation(20.0, 20)
    rows, good = method.rows(2000, 1000.0), method.usable(use, 1000.0)
    assert good[:, 0].all()
    assert not good[(rows > 695) & (rows < 1305), 1].any()
    assert good[(rows < 650) | (rows > 1350), 1].all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((0.0, 1), "above 0"), ((10.0, 0), "1 or more"), ((10.0, 1, 10.0), "50 to 150"), ((float("nan"),), "above 0")],
)
def test_settings_that_cannot_be_are_refused(arguments, said):
    with pytest.raises(sy.OptionError, match=said):
        Decimation(*arguments)


def test_a_step_that_would_alias_is_refused_with_one_that_would_not():
    with pytest.raises(sy.OptionError, match="factor of at most 5"):
        Decimation(100.0, 10).taps(1000.0)


def test_too_short_a_recording_is_said(rng):
    with pytest.raises(sy.DataError, match="spans 365 rows"):
        Decimation(10.0, 10).apply(rng.normal(size=(100, 2)), 1000.0)
    assert Decimation(10.0, 10).rows(100, 1000.0).size == 0


def test_a_stream_that_is_finished_takes_nothing_more(rng):
    stream = Decimation(10.0, 10).stream(1000.0, 2)
    stream.push(rng.normal(size=(GROUP, 2)))
    stream.finish()
    with pytest.raises(sy.OptionError, match="finished"):
        stream.push(rng.normal(size=(GROUP, 2)))
