import numpy as np
import pytest

from visionshare.errors import ExportError

pytest.importorskip("unicorn")

from visionshare.export.targets.unicorn_core import UnicornCore

_FLASH = 0x08000000
# movs r0, #7; adds r0, r0, r1
_PROGRAM = bytes.fromhex("07204018")


@pytest.fixture
def core():
    made = UnicornCore("arm", "MCLASS", "UC_CPU_ARM_CORTEX_M4")
    made.map(_FLASH, 1 << 16)
    made.write(_FLASH, _PROGRAM)
    return made


def test_a_program_computes_with_registers_and_memory(core):
    core.set_register("R1", 35)
    core.run(_FLASH | 1, _FLASH + len(_PROGRAM), 1_000_000)
    assert core.register("R0") == 42
    assert core.read(_FLASH, len(_PROGRAM)) == _PROGRAM


def test_hooks_are_called_at_each_instruction_with_the_address_of_the_data(core):
    from numba import cfunc, types

    @cfunc(types.void(types.voidptr, types.uint64, types.uint32, types.CPointer(types.uint64)))
    def count(engine, address, size, data):
        data[0] += 1
        data[1] += address

    data = np.zeros(2, np.uint64)
    core.hook("CODE", count.address, data)
    core.run(_FLASH | 1, _FLASH + len(_PROGRAM), 1_000_000)
    assert data.tolist() == [2, 2 * _FLASH + 2]


def test_what_unicorn_refuses_is_an_error(core):
    with pytest.raises(ExportError, match="the emulated core stopped"):
        core.run(0x40000001, 0x40000010, 1_000_000)
    with pytest.raises(ExportError, match="the emulated core stopped"):
        core.map(_FLASH, 1 << 16)
