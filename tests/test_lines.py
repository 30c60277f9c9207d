"""Numbers in text are the nearest doubles, and a line that is not written plainly is never taken for one that is."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.data.lines import BLANK, PLAIN, read_lines

digits = st.text("0123456789", max_size=30)
signs = st.sampled_from(["", "-", "+"])
exponents = st.just("") | st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 400))
written = st.builds("{}{}{}{}{}".format, signs, digits, st.sampled_from(["", "."]), digits, exponents)
plain = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.floats(-1e3, 1e3).map("{:.9f}".format)


def double(text):
    """What Python makes of a number, None where it makes none that is finite, or only by its own rule on 1_0."""
    try:
        value = float(text.replace("_", "?"))
    except ValueError:
        return None
    return value if np.isfinite(value) else None


@settings(max_examples=1000, deadline=None)
@given(st.lists(plain | written, min_size=1, max_size=20))
@example(["9007199254740993", "9007199254740992.999", "9007199254740993.0000000000000000000001"])  # half way, and not
@example(["4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062329e-324", "1e-400", "0e999999"])
@example(["1.7976931348623158e308", "1.7976931348623159e308", "17976931348623157" + "0" * 292, "1e309"])
@example(["2.2250738585072011e-308", "2.2250738585072014e-308", "-0.0", "00000000000000000000000000000001.5"])
@example(["", ".", "-", "e5", "1e", "1e+", "1.2.3", "1e5e5", "--1", "+.5", "5.", "1_0", "0x10", "nan", "-inf", "१"])
def test_every_number_is_the_nearest_double_or_left_to_the_caller(texts):
    values, kind = read_lines("\n".join(f"1,{text}" for text in texts).encode(), 0, ",", ".", [1], (2, 2))
    for text, value, is_plain in zip(texts, values[:, 0], kind == PLAIN, strict=True):
        expected = double(text)
        if is_plain:
            assert expected is not None, text
            assert value.view(np.uint64) == np.float64(expected).view(np.uint64), text
        elif expected is not None:  # only such as its first 19 digits do not decide, and other people's digits
            assert sum(letter.isdigit() for letter in text) > 19 or not text.isascii(), text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [",", ";", "\t", None])
def test_lines_are_read_blank_or_left_whatever_parts_and_ends_them(mark, end):
    between = " \t " if mark is None else mark
    rows = [["1", "-2.5", "3e2"], ["4", "5"], [], ["#", "6", "7"], ["8", "9", "10"], ["1", '"2"', "3"]]
    text = end.join(between.join(row) for row in rows).encode()
    values, kind = read_lines(text, 0, mark, ".", [2, 0], (3, 3))
    assert kind[[0, 4]].tolist() == [PLAIN, PLAIN]
    assert kind[2] == BLANK
    assert [text[k:].split(end.encode())[0].decode() for k in kind[[1, 3, 5]]] == [
        between.join(rows[k]) for k in (1, 3, 5)
    ]
    assert values[[0, 4]].tolist() == [[300.0, 1.0], [10.0, 8.0]]


def test_one_column_may_be_asked_for_twice_and_others_may_hold_anything():
    values, kind = read_lines(b"1,x y,2\n3,,4\n5, z ,6\n", 0, ",", ".", [2, 0, 2], (3, 3))
    assert kind.tolist() == [PLAIN] * 3
    assert values.tolist() == [[2, 1, 2], [4, 3, 4], [6, 5, 6]]


def test_what_a_recording_saves_as_csv_comes_back_to_the_last_bit(tmp_path, rng):
    q, tau = rng.standard_normal((2, 20_000, 3)) * 10.0 ** rng.integers(-200, 200, (20_000, 3))
    run = sy.Recording(np.cumsum(rng.uniform(1e-3, 2e-3, len(q))), q, tau)
    sy.save_recording(run, tmp_path / "run.csv")
    back = sy.load_recording(tmp_path / "run.csv")
    for name in ("t", "q", "tau"):
        assert np.array_equal(getattr(back, name), getattr(run, name))


def test_faults_among_many_rows_are_told_with_their_lines(tmp_path, rng):
    rows = [[repr(0.001 * k), repr(x), repr(-x)] for k, x in enumerate(rng.standard_normal(30_000).tolist())]
    rows[12_345][1] = "n/a"
    rows[20_000].pop()
    lines = ["time,q0,tau0"] + [",".join(row) for row in rows]
    lines.insert(5000, "")
    lines.insert(6000, "# a remark")
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(sy.DataError, match=r"line 12349, column 'q0': 'n/a' is not a finite number"):
        sy.load_recording(tmp_path / "run.csv")
    run = sy.load_recording(tmp_path / "run.csv", repair=True)
    good = [k for k in range(len(rows)) if k not in (12_345, 20_000)]
    assert np.array_equal(run.q[:, 0], [float(rows[k][1]) for k in good])
    assert "dropped rows with an entry" in run.about["repairs"][0]
    assert "2, at 12349 … 20004" in run.about["repairs"][0]
