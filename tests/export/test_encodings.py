"""What instructions load, store, divide and call, by their encodings."""

import numpy as np
import pytest

from visionshare.export.targets.cycles import CYCLE_MODELS
from visionshare.export.targets.encodings import events


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
    assert events(code, "arm").accesses[0] == values
    assert len(events(code, "arm").accesses) == len(words)


@pytest.mark.parametrize(
    ("target", "words", "cycles"),
    [
        ("cortex-m0plus", (0xF000, 0xF800), 1),  # bl
        ("cortex-m0plus", (0xBD70,), 5),  # pop {r4, r5, r6, pc}
        ("cortex-m4", (0xF000, 0xF800), 0),  # bl
        ("cortex-m4", (0xFBB0, 0xF0F1), 11),  # udiv r0, r0, r1
        ("cortex-m4", (0xFB90, 0xF0F1), 11),  # sdiv r0, r0, r1
        ("cortex-m4", (0xFBA0, 0x0123), 0),  # umull r0, r1, r0, r3
        ("rv32imc", (0x2503, 0x0045), 1),  # lw a0, 4(a0)
        ("rv32imc", (0xC503, 0x0005), 1),  # lbu a0, 0(a1)
        ("rv32imc", (0xA223, 0x00A5), 0),  # sw a0, 4(a1)
        ("rv32imc", (0x41C8,), 1),  # c.lw a0, 4(a1)
        ("rv32imc", (0x4532,), 1),  # c.lwsp a0, 12(sp)
        ("rv32imc", (0xC1C8,), 0),  # c.sw a0, 4(a1)
        ("rv32imc", (0x4505,), 0),  # c.li a0, 1
        ("rv32imc", (0x5533, 0x02B5), 18),  # divu a0, a0, a1
        ("rv32imc", (0x0533, 0x02B5), 0),  # mul a0, a0, a1
        ("rv32imc", (0x5533, 0x00B5), 0),  # srl a0, a0, a1
    ],
)
def test_further_cycles(target, words, cycles):
    code = np.array(words, "<u2").tobytes()
    machine = "riscv" if target == "rv32imc" else "arm"
    assert CYCLE_MODELS[target].further(events(code, machine))[0] == cycles
