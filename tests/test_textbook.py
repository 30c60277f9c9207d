"""The exercises of the chapter: what each claims, and that its commands exist."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from typer.testing import CliRunner

from steelyard.cli.catalogue import ENTRIES, load
from steelyard.cli.main import app
from steelyard.errors import OptionError
from steelyard.textbook import elastic, payload, stribeck
from steelyard.textbook.arms import spatial
from steelyard.textbook.book import EXERCISES, solve
from steelyard.textbook.checklists import CHECKLISTS
from steelyard.textbook.recursion import chain_of, newton_euler

ROUNDING = 1e-12  # of what is computed from numbers of order one in two ways


@pytest.fixture(scope="module")
def answers():
    return {number: solve(number) for number in EXERCISES}


def test_the_closed_form_of_two_links_is_right_entry_by_entry_and_its_c_is_christoffels(answers):
    found = answers["7.1"]
    for key in ("M_error", "C_error", "G_error", "lagrange_error", "mujoco_error", "other_product"):
        assert found.value(key) < ROUNDING, key
    assert found.value("skew") < 1e-7  # Ṁ is a central difference
    assert found.value("other_skew") > 0.1
    for key in ("M11", "M12", "M22", "C11", "C12", "C21", "G1", "G2"):
        assert found.value(key) == pytest.approx(found[key].book, rel=1e-12)


def test_the_printed_recursion_is_wrong_until_it_turns_by_one_joint_and_knows_the_frames(answers):
    found = answers["7.2"]
    right = ("planar: relative", "planar: with twist", "spatial: with twist")
    wrong = ("planar: as printed", "spatial: as printed", "spatial: relative")
    assert max(found[key].book for key in right) < ROUNDING
    assert min(found[key].book for key in wrong) > 0.1
    assert max(line.ours for line in found.lines) < ROUNDING


def test_the_printed_recursion_is_right_for_one_link_alone():
    chain = chain_of(spatial())
    first = type(chain)(*(part[:1] for part in chain))
    one, three = (np.array([0.4]), np.array([1.0]), np.array([2.0])), spatial().gravity
    printed, mended = (newton_euler(first, *one, three, turns) for turns in ("as printed", "with twist"))
    np.testing.assert_allclose(printed, mended, rtol=1e-12)


def test_three_planar_links_have_nine_base_parameters_and_spatial_ones_fifteen(answers):
    found = answers["7.4"]
    assert found.value("parameters") == 30
    counts = {"planar": 9, "table": 7, "spatial": 15, "wall": 17}
    for arm, rank in counts.items():
        assert found.value(arm) == rank
        assert found.value(f"{arm} svd") == rank
    assert found.value("m2") == pytest.approx(0.16, rel=1e-9)
    assert found.value("m3") == pytest.approx(0.16, rel=1e-9)


def test_the_modes_of_the_flexible_joint_are_those_of_its_matrix_pencil(answers):
    found = answers["7.5"]
    squares = scipy.linalg.eigvals([[110.0, -100.0], [-100.0, 100.0]], np.diag([1.0, 0.1])).real
    np.testing.assert_allclose([found.value("slow"), found.value("fast")], np.sqrt(np.sort(squares)), rtol=1e-12)
    assert found["slow"].book == pytest.approx(3.16, abs=5e-3)
    assert found["fast"].book == pytest.approx(33.2, abs=0.05)
    assert found.value("slow") == pytest.approx(3.014, abs=1e-3)
    assert found.value("fast") == pytest.approx(33.18, abs=1e-2)


def test_the_printed_law_of_the_flexible_joint_rests_beside_its_place_and_the_mended_one_does_not(answers):
    found = answers["7.5"]
    assert found["rest"].book == pytest.approx(0.928, abs=1e-3)
    assert found.value("rest") == pytest.approx(1.0, abs=1e-9)
    # 20 s at a decay of 0.5/s leave e⁻¹⁰ of a radian.
    assert found.value("simulated") == pytest.approx(found.value("rest"), abs=1e-4)
    assert found["simulated"].book == pytest.approx(found["rest"].book, abs=1e-4)
    for value in (found["slowest"].ours, found["slowest"].book):
        assert value < 0
    for value in (found["slow_damping"].ours, found["slow_damping"].book):
        assert value < 0.1
    for value in (found["fast_damping"].ours, found["fast_damping"].book):
        assert value < 0.5


def test_roots_of_the_elastic_law_are_those_of_its_motion_by_differences():
    """A of the text against differences of the very motion that is simulated."""
    k, J, B, w, h = elastic.STIFFNESS, elastic.LINK, elastic.MOTOR, elastic.WEIGHT, 1e-6
    for spring in (1.0, 0.0):
        A, b = elastic._slopes(spring)

        def rate(x, spring=spring, b=b):
            twist = k * (x[1] - x[0])
            motor = elastic._torque(x, spring, b) - twist
            return np.array([x[2], x[3], (twist - w * np.sin(x[0])) / J, motor / B])

        columns = [(rate(h * e) - rate(-h * e)) / (2 * h) for e in np.eye(4)]
        np.testing.assert_allclose(np.column_stack(columns), A, atol=1e-5)


def test_slotine_and_li_with_the_printed_sign_runs_away_and_with_the_other_finds_the_load(answers):
    found = answers["7.6"]
    assert found["s"].book > 10
    assert found["time"].book < 1
    assert found.value("time") == pytest.approx(10.0)
    assert found.value("s") < 1e-3
    assert found.value("load") == pytest.approx(payload.LOAD, rel=0.02)
    assert found.value("still_s") < 1e-3
    assert abs(found.value("still_load") - payload.LOAD) > 0.5 * payload.LOAD  # tracks, and does not know


def test_the_grasp_holds_at_03_and_falls_below_m_g_over_four_f(answers):
    found = answers["7.7"]
    assert found["holds"].ours
    assert not found["falls"].ours
    assert found["all_hold"].ours
    assert found.value("least") == pytest.approx(9.81 / 40)
    assert found.value("least_found") == pytest.approx(found.value("least"), abs=2e-6)  # bisected to 1e-6
    assert found.value("friction") == pytest.approx(9.81, rel=1e-9)
    assert found.value("speed") == pytest.approx(found.value("speed_closed"), rel=1e-9)
    assert found.value("spread") < 1e-6
    assert found.value("warm") == 0
    assert found.value("pulled") == 0
    assert found["pulled"].book == pytest.approx(-10.0)
    assert found.value("box") == pytest.approx(np.sqrt(2))
    assert found.value("unknowns") == 24


def test_a_contact_that_is_shaken_or_stepped_is_known_to_two_per_cent_and_a_steady_one_said_not_to_be(answers):
    found = answers["7.8"]
    for what in ("shaken", "stepped"):
        for name in ("RLS", "EKF"):
            for key in ("stiffness", "damping", "position"):
                line = found[f"{what} {name} {key}"]
                assert line.ours == pytest.approx(line.book, rel=0.02), line.what
            assert "estimated" in found[f"{what} {name} says"].ours
    for name in ("RLS", "EKF"):
        assert "does not show stiffness" in found[f"steady {name} says"].ours


def test_stribecks_law_is_found_within_its_deviations_and_the_recipe_depends_on_its_start(answers):
    found = answers["7.3"]
    assert found["arrive"].book < found.value("arrive") < 1  # no single start is to be trusted
    for name in stribeck.NAMES:
        assert abs(found.value(f"{name} apart")) < 4
    errors = []
    for seed in range(40):
        values, deviation = stribeck.by_search(*stribeck.measured(np.random.default_rng(seed)))
        errors.append((values - [stribeck.TRUTH[name] for name in stribeck.NAMES]) / deviation)
    spread = np.std(errors, axis=0)
    assert np.all((spread > 0.6) & (spread < 1.4))  # 1 ± 0.11 at 40 runs


def test_every_formula_that_is_said_not_to_hold_does_not(answers):
    found = answers["formulas"]
    assert found.value("potential") == pytest.approx(-found["potential"].book, rel=1e-6)
    assert found.value("best") == pytest.approx(80 + np.sqrt(80**2 + 1e4))  # λ = 40/0.5, J/Jm = 1e4
    assert found.value("acceleration") > 2 * found["acceleration"].book
    assert found.value("belt") == pytest.approx(2 * found["belt"].book)
    assert found.value("observer") < 1e-6 < 1 < found["observer"].book
    assert found["condition"].book == pytest.approx(found.value("condition") ** 2, rel=1e-6)
    assert found.value("sigma") == pytest.approx(0.7, rel=0.05)
    assert found["sigma"].book == pytest.approx(100.0)
    assert found.value("largest") > found.value("rest")
    assert found["passes"].book
    assert not found["passes"].ours
    assert found.value("program") < 1e-12 < 1 < found["program"].book
    assert found.value("euler") == pytest.approx(1.0, abs=1e-9)
    assert found["euler"].book > 1e6


def test_every_command_of_checklists_and_exercises_exists_with_its_options(answers):
    said = [check.command for checks in CHECKLISTS.values() for check in checks]
    said += [command for answer in answers.values() for command in answer.commands]
    for command in said:
        steelyard, name, *rest = shlex.split(command)
        assert steelyard == "steelyard"
        assert name in ENTRIES
        options = {option for param in load(name).params for option in param.opts} | {"--help"}
        for word in rest:
            if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word):
                assert word in options, command


def test_every_command_of_the_checklists_stands_in_the_docs_which_are_run():
    page = (Path(__file__).parents[1] / "docs" / "textbook.md").read_text(encoding="utf-8").splitlines()
    for checks in CHECKLISTS.values():
        for check in checks:
            assert check.command in page


def test_the_command_prints_the_book_beside_ours_and_json_has_every_line(answers):
    shown = CliRunner().invoke(app, ["textbook", "7.4", "checklists"])
    assert shown.exit_code == 0
    assert "12 … 15" in shown.stdout
    assert "steelyard check panda" in shown.stdout
    facts = json.loads(CliRunner().invoke(app, ["textbook", "7.5", "checklists", "--json"]).stdout)
    (exercise,) = facts["exercises"]
    assert [line["key"] for line in exercise["lines"]] == [line.key for line in answers["7.5"].lines]
    assert set(facts["checklists"]) == set(CHECKLISTS)
    with pytest.raises(OptionError, match=r"7\.9"):
        CliRunner().invoke(app, ["textbook", "7.9"], catch_exceptions=False)
    assert solve("7.8", 3)["shaken EKF stiffness"].ours != answers["7.8"]["shaken EKF stiffness"].ours
