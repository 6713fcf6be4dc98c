"""The cores that an exported classifier is compiled and measured for."""

from __future__ import annotations

from dataclasses import dataclass

from visionshare.errors import InputError
from visionshare.errors.names import choices


@dataclass(frozen=True)
class Target:
    """A core: how clang is told of it, and how it is emulated.

    Parameters
    ----------
    name : str
    description : str
        What a reader knows it by.
    triple : str
        Machine and binary interface, as clang says it.
    cpu : str
        Instructions that it has.
    machine : {"arm", "riscv", "wasm", "avr"}
        Instruction set, for the emulator.
    model : str, optional
        The emulator's name of the core.
    remark : str, optional
        What a figure of it does not say.

    Examples
    --------
    >>> TARGETS["cortex-m4"].machine
    'arm'
    """

    name: str
    description: str
    triple: str
    cpu: str
    machine: str
    model: str | None = None
    remark: str = ""


_ESP32 = (
    "compiled for the ESP32-C3 (RISC-V, RV32IMC): clang here has no code for the Xtensa cores of "
    "the first ESP32"
)


_M55 = "compiled for the Cortex-M33, without vector instructions: at most as many"
_AVR = "compiled by avr-gcc; ram holds image and scores too"
_HARD_FLOAT = "thumb-freestanding-eabihf"
TARGETS = {
    target.name: target
    for target in (
        Target(
            "cortex-m0plus", "Arm Cortex-M0+, without floats and long products",
            "thumb-freestanding-eabi", "cortex_m0plus", "arm", "UC_CPU_ARM_CORTEX_M0",
        ),
        Target(
            "cortex-m4", "Arm Cortex-M4F", _HARD_FLOAT, "cortex_m4+vfp4d16sp", "arm",
            "UC_CPU_ARM_CORTEX_M4",
        ),
        Target(
            "cortex-m7", "Arm Cortex-M7F", _HARD_FLOAT, "cortex_m7+fp_armv8d16sp", "arm",
            "UC_CPU_ARM_CORTEX_M7",
        ),
        Target(
            "cortex-m33", "Arm Cortex-M33F", _HARD_FLOAT, "cortex_m33+dsp+fp_armv8d16sp", "arm",
            "UC_CPU_ARM_CORTEX_M33",
        ),
        Target(
            "cortex-m55", "Arm Cortex-M55", _HARD_FLOAT, "cortex_m33+dsp+fp_armv8d16sp", "arm",
            "UC_CPU_ARM_CORTEX_M33", _M55,
        ),
        Target(
            "esp32", "Espressif ESP32-C3", "riscv32-freestanding-none", "generic_rv32+m+c", "riscv",
            None, _ESP32,
        ),
        Target(
            "rv32imc", "RISC-V, RV32IMC, without floats", "riscv32-freestanding-none",
            "generic_rv32+m+c", "riscv",
        ),
        Target(
            "avr", "Microchip ATmega328P: 8 bits, 2 KiB of memory", "", "atmega328p", "avr", None,
            _AVR,
        ),
        Target(
            "atmega2560", "Microchip ATmega2560: 8 bits, 8 KiB of memory", "", "atmega2560", "avr",
            None, _AVR,
        ),
        Target(
            "wasm", "WebAssembly, of browsers and servers", "wasm32-freestanding", "generic",
            "wasm", None, "instructions of WebAssembly, not of a processor",
        ),
    )
}  # fmt: skip


def find_target(name: str, argument: str = "target") -> Target:
    """Return the target of this name.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> find_target("rv32imc").triple
    'riscv32-freestanding-none'
    """
    if name not in TARGETS:
        raise InputError(argument, name, choices(name, TARGETS))
    return TARGETS[name]
