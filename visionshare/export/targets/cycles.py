"""Cycles of cores by published timings, and energy from datasheets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from visionshare.export.targets.encodings import Events


@dataclass(frozen=True)
class CycleModel:
    """The cycles that instructions take beyond the first, and the charge of a cycle."""

    #: What the cycles come from.
    source: str
    #: Further cycles of each value that is loaded or stored.
    access: int = 0
    #: Further cycles of each branch that is taken.
    taken: int = 0
    #: Further cycles of each call, beyond a branch's.
    call: int = 0
    division: int = 0
    #: Cycles of the core in one of the core with these timings.
    share: float = 1.0
    #: The chip that the energy is for; empty without one.
    chip: str = ""
    volts: float = 0.0
    #: Typical supply current while the core runs.
    milliamperes_per_megahertz: float = 0.0

    def further(self, found: Events) -> np.ndarray:
        """Return the further cycles of each instruction, but for branches."""
        return (
            self.access * found.accesses + self.call * found.calls + self.division * found.divisions
        )

    def cycles(self, instructions: int, further: int, taken: int) -> int:
        """Return the cycles of so many instructions, memory without wait states."""
        return round(self.share * (instructions + further + self.taken * taken))

    def microjoules(self, cycles: float) -> float | None:
        """Return the energy of so many cycles; None without a chip."""
        if not self.chip:
            return None
        # Milliamperes per megahertz are nanocoulombs per cycle.
        return self.volts * self.milliamperes_per_megahertz * cycles / 1000


# Cortex-M4 Technical Reference Manual (DDI 0439), section 3.3: loads and stores take 2 cycles,
# several registers 1 + N; taken branches 2 to 4, here 3; divisions 2 to 12, here 12. Neighboring
# loads may overlap, which is left out.
_M4 = CycleModel("model of DDI 0439", access=1, taken=2, division=11)


def _by_coremark(core: str, coremark: float) -> CycleModel:
    """Return the model of a core without published timings: the M4's, by the work of a cycle."""
    source = f"estimate: DDI 0439 by CoreMark per MHz, Cortex-M4 3.42, {core} {coremark}"
    return replace(_M4, source=source, share=3.42 / coremark)


# No published timings of Espressif's cores are known to us: these have no model.
CYCLE_MODELS = {
    # Cortex-M0+ Technical Reference Manual (DDI 0484), table 3.1: loads and stores take 2 cycles,
    # several registers 1 + N, taken branches 2, calls 3, returns by POP 3 + N, products 1.
    # STM32L072 datasheet (DS10685): 93 uA per MHz in run mode, typical values at 3 V.
    "cortex-m0plus": CycleModel("model of DDI 0484", access=1, taken=1, call=1,
                                chip="STM32L072 at 3 V", volts=3.0,
                                milliamperes_per_megahertz=0.093),
    # STM32L412 datasheet (DS12469): 79 uA per MHz.
    "cortex-m4": replace(_M4, chip="STM32L412 at 3 V", volts=3.0, milliamperes_per_megahertz=0.079),
    # CoreMarks as Arm compares its processors. STM32U575 datasheet (DS13737): 19.5 uA per MHz.
    "cortex-m7": _by_coremark("M7", 5.01),
    "cortex-m33": replace(_by_coremark("M33", 4.02), chip="STM32U575 at 3.3 V", volts=3.3,
                          milliamperes_per_megahertz=0.0195),
    # Hazard3, the RISC-V core of the RP2350, "Instruction Cycle Counts": loads 2 where the next
    # instruction needs them, taken branches 2 where they are not predicted, divisions 19.
    "rv32imc": CycleModel("model of Hazard3, at most", access=1, taken=1, division=18),
    # ATmega328PB, power consumption: 5.2 mA at 8 MHz and 5 V, typical.
    "avr": CycleModel("simavr", chip="ATmega328PB at 5 V", volts=5.0,
                      milliamperes_per_megahertz=5.2 / 8),
    # ATmega640/1280/2560, DC characteristics: 10 mA at 8 MHz and 5 V, typical.
    "atmega2560": CycleModel("simavr", chip="ATmega2560 at 5 V", volts=5.0,
                             milliamperes_per_megahertz=10 / 8),
}  # fmt: skip
