"""A core in emulation: its labels and scores, its instructions, the depth of its stack."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from visionshare.codegen.c_writer import aligned
from visionshare.errors import ExportError
from visionshare.export.targets.cycles import CYCLE_MODELS
from visionshare.export.targets.device_sources import DeviceSources
from visionshare.export.targets.encodings import events
from visionshare.export.targets.linked import LinkedImage
from visionshare.export.targets.table import Target
from visionshare.export.targets.unicorn_core import UnicornCore

_FLASH = 0x08000000
_MEMORY = 0x20000000
_MEMORY_BYTES = 4 << 20
_STACK_BYTES = 1 << 18
_PAGE = 1 << 16
#: Parts of the memory begin at multiples of it.
ALIGNMENT = 64
#: A stack is filled with it: what differs afterwards was written to.
UNTOUCHED = 0xA5
# Enough for any classifier; one that has run away would never end.
_MICROSECONDS = 3_600_000_000
# Counters that the hooks write to, and what they need: the stack's register and where it is read
# to, and the core.
_INSTRUCTIONS, _LOWEST, _REGISTER, _VALUE, _ADDRESS, _CORE, _TAKEN, _NEXT, _FURTHER = range(9)
# Behind the counters: the further cycles of the instruction at each half word of flash.
_TABLE = 9
# Registers of the three arguments, the first of them for the result too; of the stack, and of the
# address to return to.
_REGISTERS = {
    "arm": ("R0", "R1", "R2", "SP", "LR"),
    "arm64": ("X0", "X1", "X2", "SP", "LR"),
    "riscv": ("A0", "A1", "A2", "SP", "RA"),
}


class CoreRun(NamedTuple):
    """What a core said of one image, and the instructions and cycles that it took."""

    label: int
    scores: np.ndarray
    instructions: int
    cycles: int | None = None


class EmulatedCore:
    """A linked classifier on an emulated core of Arm or RISC-V."""

    def __init__(
        self,
        image: LinkedImage,
        sources: DeviceSources,
        target: Target,
        work_bytes: int,
        counted: bool = True,
    ) -> None:
        self._core = _new_core(target)
        self._sources = sources
        *self._arguments, self._stack, self._back = _REGISTERS[target.machine]
        # 1) The program in flash; it returns to an address behind itself.
        flash = aligned(image.flash + _PAGE, _PAGE)
        self._core.map(_FLASH, flash)
        self._core.map(_MEMORY, _MEMORY_BYTES)
        for address, content in image.sections:
            self._core.write(address, content)
        thumb = 1 if target.machine == "arm" else 0
        self._entry = image.entry | thumb
        self._stop = _FLASH + flash - 4096
        self._return = self._stop | thumb
        # 2) In memory: static variables, the caller's work, its image, its scores; then the stack.
        self._work = aligned(_MEMORY + image.static_ram, ALIGNMENT)
        self._image = aligned(self._work + work_bytes, ALIGNMENT)
        self._scores = aligned(self._image + sources.image_bytes, ALIGNMENT)
        end = self._scores + 4 * sources.n_classes
        self._top = _MEMORY + _MEMORY_BYTES - 4096
        if end > self._top - _STACK_BYTES:
            raise ExportError(f"{end - _MEMORY:,} bytes of memory, more than are emulated")
        self._core.write(self._work, b"\xcd" * max(1, work_bytes))
        self._core.write(self._top - _STACK_BYTES, bytes([UNTOUCHED]) * _STACK_BYTES)
        # 3) Counters.
        self._counters = np.zeros(_TABLE + flash // 2, np.uint64)
        self._counters[_LOWEST] = self._top
        self._counters[_REGISTER] = self._core.number(self._stack)
        self._counters[_ADDRESS] = self._counters[_VALUE:].ctypes.data
        self._counters[_CORE] = self._core.address
        self._cycle_model = CYCLE_MODELS.get(target.name) if counted else None
        if counted:
            count, watch = _hooks(self._core.register_reader)
            self._core.hook("CODE", count.address, self._counters)
            self._core.hook("BLOCK", watch.address, self._counters)
        if self._cycle_model is not None:
            # Hooks of memory change what Unicorn computes.
            for address, content in image.sections:
                if address < _MEMORY:
                    further = self._cycle_model.further(events(content, target.machine))
                    start = _TABLE + (address - _FLASH) // 2
                    self._counters[start : start + len(further)] = further

    def classify(self, image: np.ndarray) -> CoreRun:
        """Return label, scores and instructions of one image, of the type of the sources."""
        core = self._core
        core.write(self._image, np.ascontiguousarray(image).tobytes())
        addresses = (self._image, self._work, self._scores)
        for register, address in zip(self._arguments, addresses, strict=True):
            core.set_register(register, address)
        core.set_register(self._back, self._return)
        core.set_register(self._stack, self._top)
        self._counters[[_INSTRUCTIONS, _TAKEN, _FURTHER]] = 0
        core.run(self._entry, self._stop, _MICROSECONDS)
        if core.register(self._stack) != self._top:
            raise ExportError("the emulated core did not return")
        scores = core.read(self._scores, 4 * self._sources.n_classes)
        label = core.register(self._arguments[0]) & 0xFFFFFFFF
        instructions, further, taken = self._counters[[_INSTRUCTIONS, _FURTHER, _TAKEN]].tolist()
        model = self._cycle_model
        cycles = None if model is None else model.cycles(instructions, further, taken)
        return CoreRun(label, np.frombuffer(scores, self._sources.score), instructions, cycles)

    @property
    def stack_bytes(self) -> int:
        """Bytes of stack that the images until now have needed at most."""
        low = self._top - _STACK_BYTES
        stack = np.frombuffer(self._core.read(low, _STACK_BYTES), np.uint8)
        touched = np.flatnonzero(stack != UNTOUCHED)
        written = _STACK_BYTES - touched[0] if len(touched) else 0
        # Arrays may be in part unwritten.
        return int(max(written, self._top - int(self._counters[_LOWEST])))


def _new_core(target: Target) -> UnicornCore:
    """Return a core of a target as it is after a reset, with its floating-point unit on."""
    if target.machine == "riscv":
        return UnicornCore("riscv", "RISCV32")
    if target.machine == "arm64":
        return UnicornCore("arm64", "ARM", target.model)
    core = UnicornCore("arm", "MCLASS", target.model)
    if target.model != "UC_CPU_ARM_CORTEX_M0":
        core.set_register("C1_C0_2", 0xF << 20)
        core.set_register("FPEXC", 1 << 30)
    return core


@cache
def _hooks(reader: int) -> tuple[Any, Any]:
    """Return what counts an instruction, and what looks at the stack where a block begins."""
    from numba import cfunc, types

    # Pointers as numbers: numba has no other way to make them.
    read = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)(reader)
    kind = types.void(types.voidptr, types.uint64, types.uint32, types.CPointer(types.uint64))

    @cfunc(kind)
    def count(core, at, size, counters):  # type: ignore[no-untyped-def]
        counters[_INSTRUCTIONS] += 1
        if at != counters[_NEXT]:
            counters[_TAKEN] += 1
        counters[_NEXT] = at + size
        counters[_FURTHER] += counters[_TABLE + ((at - _FLASH) >> 1)]

    @cfunc(kind)
    def watch(core, at, size, counters):  # type: ignore[no-untyped-def]
        read(counters[_CORE], types.int32(counters[_REGISTER]), counters[_ADDRESS])
        if counters[_VALUE] < counters[_LOWEST]:
            counters[_LOWEST] = counters[_VALUE]

    return count, watch
