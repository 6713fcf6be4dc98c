"""WebAssembly in wasmtime: labels and scores, counted instructions, the depth of the stack."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.codegen.c_writer import aligned
from visionshare.errors import ExportError
from visionshare.export.targets.device_sources import DeviceSources
from visionshare.export.targets.emulation import ALIGNMENT, UNTOUCHED, CoreRun

_PAGE = 1 << 16
_FUEL = 1 << 40
# Numbers of sections in a module.
_CODE = 10
_DATA = 11


class WasmCore:
    """A classifier as a WebAssembly module; an image is counted in units of wasmtime's fuel."""

    def __init__(self, module: bytes, sources: DeviceSources, work_bytes: int) -> None:
        try:
            import wasmtime
        except ImportError:
            message = "the package wasmtime is not installed: pip install 'visionshare[edge]'"
            raise ExportError(message) from None
        self._wasmtime = wasmtime
        self._sources = sources
        config = wasmtime.Config()
        config.consume_fuel = True
        self._store = wasmtime.Store(wasmtime.Engine(config))
        self._store.set_fuel(_FUEL)
        loaded = wasmtime.Module(self._store.engine, module)
        exports: Any = wasmtime.Instance(self._store, loaded, []).exports(self._store)
        self._classify = exports[f"{sources.name}_classify"]
        self._memory = exports["memory"]
        # In memory: the stack, static variables, the caller's work, its image and its scores.
        self._stack_top = exports["__stack_pointer"].value(self._store)
        self._work = aligned(exports["__heap_base"].value(self._store), ALIGNMENT)
        self._image = aligned(self._work + work_bytes, ALIGNMENT)
        self._scores = aligned(self._image + sources.image_bytes, ALIGNMENT)
        self._end = self._scores + 4 * sources.n_classes
        missing = aligned(self._end, _PAGE) // _PAGE - self._memory.size(self._store)
        if missing > 0:
            self._memory.grow(self._store, missing)
        #: Constants and variables, which lie in memory too.
        self.static_bytes = int(self._work - self._stack_top)
        self._memory.write(self._store, bytes([UNTOUCHED]) * self._stack_top, 0)

    def classify(self, image: np.ndarray) -> CoreRun:
        """Return label, scores and instructions of one image, of the type of the sources."""
        store = self._store
        store.set_fuel(_FUEL)
        self._memory.write(store, np.ascontiguousarray(image).tobytes(), self._image)
        try:
            label = self._classify(store, self._image, self._work, self._scores)
        except (self._wasmtime.Trap, self._wasmtime.WasmtimeError) as error:
            raise ExportError(f"WebAssembly stopped: {str(error).splitlines()[0]}") from None
        scores = bytes(self._memory.read(store, self._scores, self._end))
        used = _FUEL - store.get_fuel()
        return CoreRun(int(label), np.frombuffer(scores, self._sources.score), used)

    @property
    def stack_bytes(self) -> int:
        """Bytes of stack in memory that the images until now have needed at most."""
        stack = np.frombuffer(bytes(self._memory.read(self._store, 0, self._stack_top)), np.uint8)
        touched = np.flatnonzero(stack != UNTOUCHED)
        return int(self._stack_top - touched[0]) if len(touched) else 0


def section_sizes(module: bytes) -> tuple[int, int]:
    """Return the bytes of a module's code and data."""
    sizes = {_CODE: 0, _DATA: 0}
    # Behind the header, each section has its number, its size in LEB128, and its content.
    at = 8
    while at < len(module):
        number = module[at]
        at += 1
        size = shift = 0
        while module[at] & 0x80:
            size |= (module[at] & 0x7F) << shift
            shift += 7
            at += 1
        size |= module[at] << shift
        at += 1 + size
        sizes[number] = size
    return sizes[_CODE], sizes[_DATA]
