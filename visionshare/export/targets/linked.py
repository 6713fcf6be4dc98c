"""What a linked program takes: its sections, and the size of a structure."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from visionshare.errors import ExportError

_ALLOCATED = 2
_WRITABLE = 1


@dataclass(frozen=True)
class LinkedImage:
    """A linked program of bare metal."""

    entry: int
    sections: tuple[tuple[int, bytes], ...]
    code: int
    constants: int
    variables: int
    zeros: int

    @property
    def flash(self) -> int:
        """Bytes of flash: code, constants, and what variables are at the start."""
        return self.code + self.constants + self.variables

    @property
    def static_ram(self) -> int:
        """Bytes of variables."""
        return self.variables + self.zeros


def read_image(content: bytes) -> LinkedImage:
    """Return the sections of an ELF file."""
    file = _elf(content)
    sizes = {".text": 0, ".rodata": 0, ".data": 0, ".bss": 0}
    sections = []
    for section in file.iter_sections():
        if not section["sh_flags"] & _ALLOCATED:
            continue
        kind = section.name
        if kind not in sizes:
            kind = ".data" if section["sh_flags"] & _WRITABLE else ".rodata"
        sizes[kind] += section["sh_size"]
        if section["sh_type"] != "SHT_NOBITS" and section["sh_size"]:
            sections.append((section["sh_addr"], section.data()))
    return LinkedImage(file["e_entry"], tuple(sections), *sizes.values())


def symbol_size(content: bytes, name: str) -> int:
    """Return the bytes of a symbol of an ELF file."""
    return symbol(content, name)[1]


def symbol(content: bytes, name: str) -> tuple[int, int]:
    """Return the address and the bytes of a symbol of an ELF file."""
    table = _elf(content).get_section_by_name(".symtab")
    found = table.get_symbol_by_name(name) if table is not None else None
    if not found:
        raise ExportError(f"no symbol {name}")
    return int(found[0]["st_value"]), int(found[0]["st_size"])


def _elf(content: bytes) -> Any:
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        message = "the package pyelftools is not installed: pip install 'visionshare[edge]'"
        raise ExportError(message) from None
    return ELFFile(io.BytesIO(content))
