"""C of other compilers, run in QEMU: what a function returns, and its instructions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["BOARDS", "Board", "run_in_qemu"]


class Board(NamedTuple):
    """A machine of QEMU, and how a program is laid out for it."""

    machine: str
    #: Addresses of code and of variables, and where the stack begins.
    code: int
    data: int
    stack: int
    #: Ticks of the core's timer in 100 ns.
    ticks: float
    #: QEMU's nanoseconds of an instruction, as a power of two: a tick is about one.
    shift: int


#: By architecture; of the Cortex-M55 it is the only machine that QEMU has.
BOARDS = {
    "cortex-m0plus": Board("microbit", 0, 0x20000000, 0x20004000, 1.6, 6),
    "cortex-m4": Board("mps2-an386", 0, 0x20000000, 0x20010000, 2.5, 5),
    "cortex-m55": Board("mps3-an547", 0, 0x20000000, 0x20010000, 3.2, 5),
    "rv32imc": Board("virt -bios none", 0x80000000, 0x80080000, 0x80100000, 100.0, 0),
    "Xtensa lx106": Board("sim -cpu lx106", 0x50000000, 0x3FFC0000, 0x3FFD0000, 4.0, 5),
}
# What no C library gives, and eight digits as a debugger is asked to print them.
_MEMORY = """void *memset(void *to, int value, __SIZE_TYPE__ size)
{
    volatile char *bytes = to;
    while (size-- > 0) *bytes++ = (char)value;
    return to;
}
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size)
{
    volatile char *bytes = to;
    for (const char *next = from; size-- > 0; next++) *bytes++ = *next;
    return to;
}
"""
_SAY = """static void say(uint32_t value)
{
    static char digits[10];
    int n;
    for (n = 0; n < 8; n++, value <<= 4) digits[n] = "0123456789abcdef"[value >> 28];
    digits[8] = ' ';
    ask(4, digits);
}
"""
# The stack, then SysTick counts down from 2 ** 24 - 1; what a debugger is asked ends QEMU.
_ARM = """#include <stdint.h>
#include "{name}.h"
#define TIMER ((volatile uint32_t *)0xe000e010u)
extern void start(void);
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[2] = {{
    {stack:#x}u, (uintptr_t)start
}};
{memory}static void ask(uint32_t what, const void *of)
{{
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = of;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}}
{say}void start(void)
{{
    uint32_t before;
    int found;
    TIMER[1] = 0xffffffu;
    TIMER[2] = 0;
    TIMER[0] = 5;
    before = TIMER[2];
    found = {name}();
    before -= TIMER[2];
    say((uint32_t)found);
    say(before & 0xffffffu);
    ask(0x18, (const void *)0x20026);
}}
"""
# A tick of the core's counter is an instruction.
_RISCV = """#include <stdint.h>
#include "{name}.h"
__asm__(".section .vectors, \\"ax\\"\\n.global _start\\n_start: li sp, {stack:#x}\\nj start\\n");
{memory}static void ask(uint32_t what, const void *of)
{{
    register uint32_t a0 __asm__("a0") = what;
    register const void *a1 __asm__("a1") = of;
    __asm__ volatile(".balign 16\\n.option push\\n.option norvc\\n"
        "slli x0, x0, 31\\nebreak\\nsrai x0, x0, 7\\n.option pop"
        : "+r"(a0) : "r"(a1) : "memory");
}}
{say}void start(void)
{{
    uint32_t before, after;
    int found;
    __asm__ volatile(".option arch, +zicsr\\ncsrr %0, mcycle" : "=r"(before));
    found = {name}();
    __asm__ volatile(".option arch, +zicsr\\ncsrr %0, mcycle" : "=r"(after));
    say((uint32_t)found);
    say(after - before);
    ask(0x18, (const void *)0x20026);
}}
"""
# The cycle counter of the core; the simulator is asked by an instruction of its own.
_XTENSA = """#include <stdint.h>
#include "{name}.h"
__asm__(".section .vectors, \\"ax\\"\\n.global _start\\n_start:\\n"
    "movi a1, {stack:#x} >> 20\\nslli a1, a1, 20\\n"
    "movi a2, {stack:#x} >> 16 & 15\\nslli a2, a2, 16\\n"
    "or a1, a1, a2\\nj start\\n");
/* In the ROM of the ESP8266, and so not in its compiler's library. */
uint64_t __muldi3(uint64_t one, uint64_t two)
{{
    const uint32_t a = (uint32_t)one, b = (uint32_t)two;
    const uint32_t low = (a & 65535u) * (b & 65535u), first = (a >> 16) * (b & 65535u);
    const uint32_t second = (a & 65535u) * (b >> 16), middle = first + (low >> 16);
    const uint32_t more = second + (middle & 65535u);
    uint32_t high = (a >> 16) * (b >> 16) + (middle >> 16) + (more >> 16);

    high += (uint32_t)(one >> 32) * b + a * (uint32_t)(two >> 32);
    return (uint64_t)high << 32 | more << 16 | (low & 65535u);
}}
static void ask(int what, int one, const void *two, int three)
{{
    register int a2 __asm__("a2") = what;
    register int a3 __asm__("a3") = one;
    register const void *a4 __asm__("a4") = two;
    register int a5 __asm__("a5") = three;
    __asm__ volatile("simcall" : "+a"(a2), "+a"(a3) : "a"(a4), "a"(a5) : "memory");
}}
static void say(uint32_t value)
{{
    static char digits[9];
    int n;
    for (n = 0; n < 8; n++, value <<= 4) digits[n] = "0123456789abcdef"[value >> 28];
    digits[8] = ' ';
    ask(4, 1, digits, 9);
}}
void start(void)
{{
    uint32_t before, after;
    int found;
    __asm__ volatile("rsr %0, ccount" : "=a"(before));
    found = {name}();
    __asm__ volatile("rsr %0, ccount" : "=a"(after));
    say((uint32_t)found);
    say(after - before);
    ask(1, 0, 0, 0);
}}
"""


def run_in_qemu(
    architecture: str, compiler: list[str], objects: list[str], name: str, folder: Path
) -> tuple[int, int] | None:
    """Return what a function without arguments gives, and its instructions.

    ``objects`` are files of a folder, which has the header of the function. None without QEMU or a
    board for it, and where the program does not end.
    """
    board = BOARDS.get(architecture)
    if board is None:
        return None
    machines = {"xtensa": ("xtensa", _XTENSA), "riscv6": ("riscv32", _RISCV)}
    machine, text = machines.get(compiler[0][:6], ("arm", _ARM))
    emulator = f"qemu-system-{machine}"
    if shutil.which(emulator) is None:
        return None
    # 1) A start of its own: no C library knows the board.
    text = text.format(name=name, stack=board.stack, memory=_MEMORY, say=_SAY)
    (folder / "start.c").write_text(text, encoding="ascii")
    layout = [
        f"-Wl,--section-start=.vectors={board.code:#x}",
        f"-Wl,-Ttext={board.code + 0x100:#x}",
    ]
    layout += [f"-Wl,-Tdata={board.data:#x}", "-nostartfiles"]
    flags = ["-Os", "-ffreestanding", "-fno-builtin", *layout]
    # A C library's layout is not that of the board.
    plain = [word for word in compiler if not word.startswith("--specs")]
    link = [*plain, *flags, "start.c", *objects, "-nodefaultlibs", "-lgcc", "-o", "run.elf"]
    linked = subprocess.run(link, cwd=folder, check=False, capture_output=True, text=True)
    if linked.returncode:
        raise RuntimeError(linked.stderr)
    # 2) Virtual time advances with instructions alone.
    run = [emulator, "-M", *board.machine.split(), "-icount", f"shift={board.shift}"]
    run += ["-nographic", "-monitor", "none", "-serial", "none", "-semihosting"]
    try:
        done = subprocess.run(
            [*run, "-kernel", "run.elf"], cwd=folder, check=False, capture_output=True,
            text=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    found, ticks = (int(word, 16) for word in (done.stdout or done.stderr).split()[:2])
    return found, round(ticks * 100 / board.ticks / 2**board.shift)
