"""A core in emulation: its labels and scores, its instructions, the depth of its stack."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from visionshare.errors import ExportError
from visionshare.export.targets.linked import LinkedImage
from visionshare.export.targets.sources import DeviceSources
from visionshare.export.targets.table import Target

__all__ = ["EmulatedCore", "Run"]

_FLASH, _MEMORY = 0x08000000, 0x20000000
_MEMORY_BYTES, _STACK_BYTES, _PAGE = 4 << 20, 1 << 18, 1 << 16
# A stack is filled with it: what differs afterwards was written to.
_UNTOUCHED = 0xA5
# Enough for any classifier; one that has run away would never end.
_MICROSECONDS = 3_600_000_000
# Counters that the hooks write to, and what they need: the stack's register and where it is read
# to, and the core.
_INSTRUCTIONS, _LOWEST, _REGISTER, _VALUE, _ADDRESS, _CORE = range(6)


class Run(NamedTuple):
    """What a core said of one image, and the instructions that it took."""

    label: int
    scores: np.ndarray
    instructions: int


@dataclass(frozen=True)
class _Registers:
    """Registers of the three arguments, the result and the stack; of the address to return to."""

    arguments: tuple[int, int, int]
    result: int
    stack: int
    back: int | None


class EmulatedCore:
    """A linked classifier on an emulated core of Arm, RISC-V or a PC."""

    def __init__(
        self,
        image: LinkedImage,
        sources: DeviceSources,
        target: Target,
        work_bytes: int,
        counted: bool = True,
    ) -> None:
        self._unicorn = unicorn = _require_unicorn()
        self._sources, self._registers = sources, _registers(target)
        self._core = core = self._new_core(target)
        flash = -(-(image.flash + _PAGE) // _PAGE) * _PAGE
        core.mem_map(_FLASH, flash)
        core.mem_map(_MEMORY, _MEMORY_BYTES)
        for address, content in image.pieces:
            core.mem_write(address, content)
        self._stop = _FLASH + flash - 4096
        self._thumb = 1 if target.machine == "arm" else 0
        self._entry = image.entry | self._thumb
        # Static variables, the caller's work, its image and its scores; at the end the stack.
        starts = [_MEMORY + image.static_ram]
        for size in (work_bytes, sources.image_bytes, 4 * sources.n_classes):
            starts[-1] = -(-starts[-1] // 64) * 64
            starts.append(starts[-1] + size)
        self._work, self._image, self._scores, end = starts
        self._top = _MEMORY + _MEMORY_BYTES - 4096
        if end > self._top - _STACK_BYTES:
            raise ExportError(f"{end - _MEMORY:,} bytes of memory, more than are emulated")
        core.mem_write(self._work, b"\xcd" * max(1, work_bytes))
        core.mem_write(self._top - _STACK_BYTES, bytes([_UNTOUCHED]) * _STACK_BYTES)
        self._counters = np.zeros(6, np.uint64)
        self._counters[_LOWEST] = self._top
        self._counters[_REGISTER] = self._registers.stack
        self._counters[_ADDRESS] = self._counters[_VALUE:].ctypes.data
        self._counters[_CORE] = core._uch.value
        if counted:
            count, watch = _hooks()
            self._add_hook(unicorn.UC_HOOK_CODE, count)
            self._add_hook(unicorn.UC_HOOK_BLOCK, watch)

    def classify(self, image: np.ndarray) -> Run:
        """Return label, scores and instructions of one image, of the type of the sources."""
        core, registers, unicorn = self._core, self._registers, self._unicorn
        core.mem_write(self._image, np.ascontiguousarray(image).tobytes())
        for register, value in zip(
            registers.arguments, (self._image, self._work, self._scores), strict=True
        ):
            core.reg_write(register, value)
        top = self._top
        if registers.back is None:
            top -= 8
            core.mem_write(top, self._stop.to_bytes(8, "little"))
        else:
            core.reg_write(registers.back, self._stop | self._thumb)
        core.reg_write(registers.stack, top)
        self._counters[_INSTRUCTIONS] = 0
        try:
            core.emu_start(self._entry, self._stop, timeout=_MICROSECONDS)
        except unicorn.UcError as error:
            raise ExportError(f"the emulated core stopped: {error}") from None
        if core.reg_read(registers.stack) != top + (8 if registers.back is None else 0):
            raise ExportError("the emulated core did not return")
        scores = np.frombuffer(
            bytes(core.mem_read(self._scores, 4 * self._sources.n_classes)), self._sources.score
        )
        label = int(core.reg_read(registers.result)) & 0xFFFFFFFF
        return Run(label, scores, int(self._counters[_INSTRUCTIONS]))

    @property
    def stack_bytes(self) -> int:
        """Bytes of stack that the images until now have needed at most."""
        low = self._top - _STACK_BYTES
        stack = np.frombuffer(bytes(self._core.mem_read(low, _STACK_BYTES)), np.uint8)
        touched = np.flatnonzero(stack != _UNTOUCHED)
        written = _STACK_BYTES - touched[0] if len(touched) else 0
        # Arrays may be in part unwritten; some processors write below their stack.
        return int(max(written, self._top - int(self._counters[_LOWEST])))

    def _new_core(self, target: Target) -> Any:
        unicorn = self._unicorn
        kinds = {
            "arm": (unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS),
            "riscv": (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32),
            "x86": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64),
            "arm64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM),
        }
        core = unicorn.Uc(*kinds[target.machine])
        if target.model is not None:
            from unicorn import arm64_const, arm_const

            models = arm64_const if target.machine == "arm64" else arm_const
            core.ctl_set_cpu_model(getattr(models, target.model))
            if target.machine == "arm" and target.model != "UC_CPU_ARM_CORTEX_M0":
                # The floating-point unit is off after a reset: on for everybody.
                core.reg_write(arm_const.UC_ARM_REG_C1_C0_2, 0xF << 20)
                core.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)
        return core

    def _add_hook(self, kind: int, function: Any) -> None:
        """Let machine code be called: a call of Python for every instruction would take days."""
        from unicorn.unicorn_py3.unicorn import uc_hook_h, uclib

        hook = uc_hook_h()
        status = uclib.uc_hook_add(
            self._core._uch, ctypes.byref(hook), kind,
            ctypes.cast(function.address, ctypes.c_void_p),
            ctypes.c_void_p(self._counters.ctypes.data), ctypes.c_uint64(1), ctypes.c_uint64(0),
        )  # fmt: skip
        if status != self._unicorn.UC_ERR_OK:
            raise ExportError("this version of unicorn counts no instructions")


@cache
def _hooks() -> tuple[Any, Any]:
    """Return what counts an instruction, and what looks at the stack where a block begins."""
    from numba import cfunc, types
    from unicorn.unicorn_py3.unicorn import uclib

    address = ctypes.cast(uclib.uc_reg_read, ctypes.c_void_p).value or 0
    # Pointers as numbers: numba has no other way to make them.
    read = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)(address)
    kind = types.void(types.voidptr, types.uint64, types.uint32, types.CPointer(types.uint64))

    @cfunc(kind)
    def count(core, at, size, counters):  # type: ignore[no-untyped-def]
        counters[_INSTRUCTIONS] += 1

    @cfunc(kind)
    def watch(core, at, size, counters):  # type: ignore[no-untyped-def]
        read(counters[_CORE], types.int32(counters[_REGISTER]), counters[_ADDRESS])
        if counters[_VALUE] < counters[_LOWEST]:
            counters[_LOWEST] = counters[_VALUE]

    return count, watch


def _registers(target: Target) -> _Registers:
    if target.machine == "arm":
        from unicorn.arm_const import (
            UC_ARM_REG_LR,
            UC_ARM_REG_R0,
            UC_ARM_REG_R1,
            UC_ARM_REG_R2,
            UC_ARM_REG_SP,
        )

        arguments = (UC_ARM_REG_R0, UC_ARM_REG_R1, UC_ARM_REG_R2)
        return _Registers(arguments, UC_ARM_REG_R0, UC_ARM_REG_SP, UC_ARM_REG_LR)
    if target.machine == "riscv":
        from unicorn.riscv_const import (
            UC_RISCV_REG_A0,
            UC_RISCV_REG_A1,
            UC_RISCV_REG_A2,
            UC_RISCV_REG_RA,
            UC_RISCV_REG_SP,
        )

        arguments = (UC_RISCV_REG_A0, UC_RISCV_REG_A1, UC_RISCV_REG_A2)
        return _Registers(arguments, UC_RISCV_REG_A0, UC_RISCV_REG_SP, UC_RISCV_REG_RA)
    if target.machine == "arm64":
        from unicorn.arm64_const import (
            UC_ARM64_REG_LR,
            UC_ARM64_REG_SP,
            UC_ARM64_REG_X0,
            UC_ARM64_REG_X1,
            UC_ARM64_REG_X2,
        )

        arguments = (UC_ARM64_REG_X0, UC_ARM64_REG_X1, UC_ARM64_REG_X2)
        return _Registers(arguments, UC_ARM64_REG_X0, UC_ARM64_REG_SP, UC_ARM64_REG_LR)
    from unicorn.x86_const import (
        UC_X86_REG_RAX,
        UC_X86_REG_RDI,
        UC_X86_REG_RDX,
        UC_X86_REG_RSI,
        UC_X86_REG_RSP,
    )

    arguments = (UC_X86_REG_RDI, UC_X86_REG_RSI, UC_X86_REG_RDX)
    return _Registers(arguments, UC_X86_REG_RAX, UC_X86_REG_RSP, None)


def _require_unicorn() -> Any:
    try:
        import unicorn
    except ImportError:
        message = "the package unicorn is not installed: pip install 'visionshare[edge]'"
        raise ExportError(message) from None
    return unicorn
