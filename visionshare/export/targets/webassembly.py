"""WebAssembly in wasmtime: labels and scores, counted instructions, the depth of the stack."""

from __future__ import annotations

from typing import Any

import numpy as np

from visionshare.errors import ExportError
from visionshare.export.targets.emulation import Run
from visionshare.export.targets.sources import DeviceSources

__all__ = ["WasmCore"]

_PAGE = 1 << 16
_UNTOUCHED = 0xA5
_FUEL = 1 << 40


class WasmCore:
    """A classifier as a WebAssembly module; an image is counted in units of wasmtime's fuel."""

    def __init__(self, module: bytes, sources: DeviceSources, work_bytes: int) -> None:
        try:
            import wasmtime
        except ImportError:
            message = "the package wasmtime is not installed: pip install 'visionshare[edge]'"
            raise ExportError(message) from None
        config = wasmtime.Config()
        config.consume_fuel = True
        self._store = store = wasmtime.Store(wasmtime.Engine(config))
        store.set_fuel(_FUEL)
        loaded = wasmtime.Module(store.engine, module)
        exports: Any = wasmtime.Instance(store, loaded, []).exports(store)
        self._classify = exports[f"{sources.name}_classify"]
        self._memory, self._sources, self._wasmtime = exports["memory"], sources, wasmtime
        self._stack_top = exports["__stack_pointer"].value(store)
        heap = -(-exports["__heap_base"].value(store) // 64) * 64
        self._image = heap + work_bytes + 64
        self._scores = -(-(self._image + sources.image_bytes) // 64) * 64
        self._work = heap
        end = self._scores + 4 * sources.n_classes
        missing = -(-end // _PAGE) - self._memory.size(store)
        if missing > 0:
            self._memory.grow(store, missing)
        #: Constants and variables, which lie in memory too.
        self.static_bytes = int(heap - self._stack_top)
        self._memory.write(store, bytes([_UNTOUCHED]) * self._stack_top, 0)

    def classify(self, image: np.ndarray) -> Run:
        """Return label, scores and instructions of one image, of the type of the sources."""
        store, before = self._store, self._store.get_fuel()
        self._memory.write(store, np.ascontiguousarray(image).tobytes(), self._image)
        try:
            label = self._classify(store, self._image, self._work, self._scores)
        except (self._wasmtime.Trap, self._wasmtime.WasmtimeError) as error:
            raise ExportError(f"WebAssembly stopped: {str(error).splitlines()[0]}") from None
        end = self._scores + 4 * self._sources.n_classes
        read = bytes(self._memory.read(store, self._scores, end))
        used = before - store.get_fuel()
        store.set_fuel(_FUEL)
        return Run(int(label), np.frombuffer(read, self._sources.score), used)

    @property
    def stack_bytes(self) -> int:
        """Bytes of stack in memory that the images until now have needed at most."""
        stack = np.frombuffer(bytes(self._memory.read(self._store, 0, self._stack_top)), np.uint8)
        touched = np.flatnonzero(stack != _UNTOUCHED)
        return int(self._stack_top - touched[0]) if len(touched) else 0
