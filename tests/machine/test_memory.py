"""The bound of memory: what is held counts, and what does not fit is refused before it is made."""

import pytest

from visionshare.errors import InputError, MemoryLimitError
from visionshare.machine.memory import LEAST, check_fits, hold, memory_limit, memory_room
from visionshare.machine.resources import available_memory


def test_without_a_bound_the_machine_is_the_bound():
    assert memory_room() == max(available_memory(), LEAST)
    with pytest.raises(MemoryLimitError, match=r"^images: about 9\.1 TiB; this machine allows"):
        check_fits("images", 10**13, "fewer")


def test_what_is_held_leaves_less_room():
    with memory_limit("1GiB", "--memory"):
        hold("images", 700 << 20)
        assert memory_room() == 324 << 20
        check_fits("columns", 324 << 20, "fewer features")
        message = (
            r"^columns: about 325\.0 MiB beside 700\.0 MiB of images; --memory allows 1\.0 GiB: "
            "fewer features, or more memory$"
        )
        with pytest.raises(MemoryLimitError, match=message):
            check_fits("columns", 325 << 20, "fewer features")
        hold("images", 0)
        assert memory_room() == 1 << 30
    assert memory_room() == max(available_memory(), LEAST)


def test_a_small_bound_refuses_nothing_small():
    with memory_limit("10kB"):
        check_fits("anything", LEAST, "less")
        with pytest.raises(MemoryLimitError, match=r"memory allows 9\.8 KiB"):
            check_fits("anything", LEAST + 1, "less")


def test_bounds_inside_of_bounds_end_with_their_block():
    with memory_limit("2GiB"):
        with memory_limit("1GiB"):
            assert memory_room() == 1 << 30
        assert memory_room() == 2 << 30


def test_a_bound_that_is_no_size_is_refused():
    with pytest.raises(InputError, match="--memory: got 'much'"), memory_limit("much", "--memory"):
        pass


def test_what_is_refused_is_a_memory_error_too():
    with pytest.raises(MemoryError), memory_limit(1):
        check_fits("images", 1 << 40, "fewer")
