"""What instructions of Cortex-M load and store, by their encodings."""

import numpy as np
import pytest

from visionshare.export.targets.thumb import accesses


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ((0x1840,), 0),  # adds r0, r0, r1
        ((0x4801,), 1),  # ldr r0, [pc, #4]
        ((0x5C08,), 1),  # ldrb r0, [r1, r0]
        ((0x6808,), 1),  # ldr r0, [r1]
        ((0xB510,), 2),  # push {r4, lr}
        ((0xBD70,), 4),  # pop {r4, r5, r6, pc}
        ((0xB082,), 0),  # sub sp, #8
        ((0xC906,), 2),  # ldmia r1!, {r1, r2}
        ((0xE8B0, 0x0070), 3),  # ldmia.w r0!, {r4, r5, r6}
        ((0xE92D, 0x47F0), 8),  # push.w {r4-r10, lr}
        ((0xE9D0, 0x0100), 2),  # ldrd r0, r1, [r0]
        ((0xE8DF, 0xF000), 1),  # tbb [pc, r0]
        ((0xF8D1, 0x0004), 1),  # ldr.w r0, [r1, #4]
        ((0xF991, 0x0000), 1),  # ldrsb.w r0, [r1]
        ((0xFB10, 0x1102), 0),  # smlabb r1, r0, r2, r1
        ((0xED90, 0x0A00), 1),  # vldr s0, [r0]
        ((0xED90, 0x0B00), 2),  # vldr d0, [r0]
        ((0xED2D, 0x8B04), 4),  # vpush {d8, d9}
        ((0xEC51, 0x0B10), 0),  # vmov r0, r1, d0
    ],
)
def test_values_of_an_instruction(words, values):
    code = np.array(words, "<u2").tobytes()
    assert accesses(code)[0] == values
    assert len(accesses(code)) == len(words)
