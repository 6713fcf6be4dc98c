"""A core of Unicorn by its C interface: hooks of the Python interface call Python each time."""

from __future__ import annotations

import ctypes
import weakref
from importlib import import_module

import numpy as np

from visionshare.errors import ExportError


class UnicornCore:
    """A core whose hooks are machine code.

    Parameters
    ----------
    machine : {"arm", "arm64", "riscv"}
        Architecture.
    mode : str
        Mode of the architecture, such as "RISCV32", as in ``UC_MODE_RISCV32``.
    model : str, optional
        Constant of the model of the core, such as "UC_CPU_ARM_CORTEX_M4".

    Raises
    ------
    ExportError
        If Unicorn is not installed, or refuses a call.
    """

    def __init__(self, machine: str, mode: str, model: str | None = None) -> None:
        try:
            from unicorn import unicorn_const
            from unicorn.unicorn_py3.unicorn import uclib
        except ImportError:
            message = "the package unicorn is not installed: pip install 'visionshare[edge]'"
            raise ExportError(message) from None
        self._constants = unicorn_const
        self._names = import_module(f"unicorn.{machine}_const")
        self._library = uclib
        self._machine = machine.upper()
        self._handle = ctypes.c_void_p()
        architecture = self._constant(f"ARCH_{self._machine}")
        self._call("open", architecture, self._constant(f"MODE_{mode}"), ctypes.byref(self._handle))
        weakref.finalize(self, self._library.uc_close, self._handle)
        if model is not None:
            # As the macro uc_ctl_set_cpu_model: direction, number of arguments, what is set.
            direction = self._constant("CTL_IO_WRITE") << 30
            request = direction | 1 << 26 | self._constant("CTL_CPU_MODEL")
            self._call("ctl", self._handle, request, ctypes.c_int(getattr(self._names, model)))

    @property
    def address(self) -> int:
        """The address of the core, which its C functions take."""
        return self._handle.value or 0

    @property
    def register_reader(self) -> int:
        """The address of ``uc_reg_read``."""
        return ctypes.cast(self._library.uc_reg_read, ctypes.c_void_p).value or 0

    def number(self, register: str) -> int:
        """Return the number of a register, such as "SP"."""
        return int(getattr(self._names, f"UC_{self._machine}_REG_{register}"))

    def map(self, address: int, n_bytes: int) -> None:
        """Add memory."""
        self._call("mem_map", self._handle, address, n_bytes, self._constant("PROT_ALL"))

    def write(self, address: int, content: bytes) -> None:
        """Write to memory."""
        self._call("mem_write", self._handle, address, content, len(content))

    def read(self, address: int, n_bytes: int) -> bytes:
        """Return what stands in memory."""
        content = ctypes.create_string_buffer(n_bytes)
        self._call("mem_read", self._handle, address, content, n_bytes)
        return content.raw

    def set_register(self, register: str, value: int) -> None:
        """Write to a register."""
        content = ctypes.byref(ctypes.c_uint64(value))
        self._call("reg_write", self._handle, self.number(register), content)

    def register(self, register: str) -> int:
        """Return the value of a register."""
        content = ctypes.c_uint64(0)
        self._call("reg_read", self._handle, self.number(register), ctypes.byref(content))
        return content.value

    def hook(self, event: str, function: int, data: np.ndarray) -> None:
        """Call the C function of an address with data at each "CODE" (instruction) or "BLOCK"."""
        kind = self._constant(f"HOOK_{event}")
        number = ctypes.byref(ctypes.c_size_t())
        # From 1 to 0 means everywhere.
        self._call("hook_add", self._handle, number, kind, function, data.ctypes.data, 1, 0)

    def run(self, begin: int, end: int, microseconds: int) -> None:
        """Run from an address to another, for so long at most."""
        self._call("emu_start", self._handle, begin, end, microseconds, 0)

    def _constant(self, name: str) -> int:
        return int(getattr(self._constants, f"UC_{name}"))

    def _call(self, function: str, *arguments: object) -> None:
        """Call a C function, which returns an error's number."""
        error = getattr(self._library, f"uc_{function}")(*arguments)
        if error:
            reason = self._library.uc_strerror(error).decode()
            raise ExportError(f"the emulated core stopped: {reason}")
