"""Cycles of cores whose maker publishes instruction timings, and energy from datasheets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CycleModel:
    """The cycles that instructions take beyond the first, and the charge of a cycle."""

    #: What the cycles come from.
    source: str
    #: Further cycles of each value that is loaded or stored.
    access: int = 0
    #: Further cycles of each branch that is taken.
    taken: int = 0
    #: The chip that the energy is for; empty without one.
    chip: str = ""
    volts: float = 0.0
    #: Typical supply current while the core runs.
    milliamperes_per_megahertz: float = 0.0

    def cycles(self, instructions: int, accesses: int, taken: int) -> int:
        """Return the cycles of so many instructions, memory without wait states."""
        return instructions + self.access * accesses + self.taken * taken

    def microjoules(self, cycles: float) -> float | None:
        """Return the energy of so many cycles; None without a chip."""
        if not self.chip:
            return None
        # Milliamperes per megahertz are nanocoulombs per cycle.
        return self.volts * self.milliamperes_per_megahertz * cycles / 1000


# No published timings of the Cortex-M7, M33 and M55 or of Espressif's cores are known to us: these
# have no model.
CYCLE_MODELS = {
    # Cortex-M0+ Technical Reference Manual (DDI 0484), table 3.1: loads and stores take 2 cycles,
    # several registers 1 + N, taken branches 2, products 1. STM32L072 datasheet (DS10685): 93 uA
    # per MHz in run mode, typical values at 3 V.
    "cortex-m0plus": CycleModel("model of DDI 0484", 1, 1, "STM32L072 at 3 V", 3.0, 0.093),
    # Cortex-M4 Technical Reference Manual (DDI 0439), section 3.3: loads and stores take 2 cycles,
    # several registers 1 + N; taken branches 2 to 4, here 3. Neighboring loads may overlap and
    # divisions take up to 12: both are left out. STM32L412 datasheet (DS12469): 79 uA per MHz.
    "cortex-m4": CycleModel("model of DDI 0439", 1, 2, "STM32L412 at 3 V", 3.0, 0.079),
    # ATmega328PB, power consumption: 5.2 mA at 8 MHz and 5 V, typical.
    "avr": CycleModel("simavr", chip="ATmega328PB at 5 V", volts=5.0,
                      milliamperes_per_megahertz=5.2 / 8),
    "atmega2560": CycleModel("simavr"),
}  # fmt: skip
