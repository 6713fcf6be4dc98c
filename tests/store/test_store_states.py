"""A store under any sequence of requests, damage and repairs gives right columns or says no."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.testing import assert_array_equal

from visionshare.errors import StoreError
from visionshare.generators.pixels.family import Pixels
from visionshare.store import create_store, open_store, repair_store, store_info, verify_store
from visionshare.store.manifest import read_manifest

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 5, 6), np.uint8)
FAMILY = Pixels().fit(IMAGES)
TRUE = FAMILY.transform_columns(IMAGES, dtype="float16").astype(np.float32)
IDS = st.lists(st.integers(0, len(TRUE) - 1), min_size=1, max_size=8, unique=True)


class StoreMachine(RuleBasedStateMachine):
    """The model: the set of columns that were committed, and whether a shard was damaged."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "store"
        self.columns = create_store(self.folder, FAMILY, IMAGES, memory="2kB")
        self.committed, self.damaged = set(), False

    def teardown(self):
        shutil.rmtree(self.folder.parent)

    def shards(self):
        return sorted((self.folder / "shards").glob("*.h5"))

    @rule(ids=IDS)
    def ask(self, ids):
        try:
            values = self.columns.columns_of(np.array(ids))
        except StoreError:
            assert self.damaged
            return
        assert_array_equal(values, TRUE[ids])
        self.committed |= set(ids)

    @rule()
    def open_again(self):
        self.columns = open_store(self.folder, FAMILY, IMAGES, memory="2kB")
        assert not self.committed & set(self.columns.missing.tolist())

    @rule(ids=IDS)
    def read_without_the_images(self, ids):
        reader = open_store(self.folder)
        complete = not set(ids) & set(reader.missing.tolist())
        try:
            values = reader.columns_of(np.array(ids))
        except StoreError:
            assert self.damaged or not complete
            return
        assert complete
        assert_array_equal(values, TRUE[ids])

    @rule(name=st.sampled_from([".00000.h5.1.partial", "00099.h5"]))
    def a_writer_dies(self, name):
        (self.folder / "shards").mkdir(exist_ok=True)
        (self.folder / "shards" / name).write_bytes(b"half a shard")

    @precondition(lambda self: self.shards())
    @rule(data=st.data(), kind=st.sampled_from(["flip", "cut", "gone", "touch", "swap"]))
    def damage(self, data, kind):
        # Nobody may hold the file mapped while it shrinks: the system itself would stop us.
        self.columns = None
        path = data.draw(st.sampled_from(self.shards()))
        content = bytearray(path.read_bytes())
        if kind == "gone" or not content:
            # A file that was cut to nothing before has no bit left to flip.
            path.unlink()
        elif kind == "touch":
            path.touch()
        elif kind == "cut":
            path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        elif kind == "swap":
            path.write_bytes(data.draw(st.sampled_from(self.shards())).read_bytes())
        else:
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(
                st.integers(0, 7)
            )
            path.write_bytes(content)
        self.damaged = self.damaged or kind != "touch"
        self.columns = open_store(self.folder, FAMILY, IMAGES, memory="2kB")

    @rule()
    def repair(self):
        self.columns = None
        repair_store(self.folder)
        assert verify_store(self.folder) == {}
        self.columns = open_store(self.folder, FAMILY, IMAGES, memory="2kB")
        if not self.damaged:
            assert not self.committed & set(self.columns.missing.tolist())
        self.committed = set(range(len(TRUE))) - set(self.columns.missing.tolist())
        self.damaged = False
        assert {p.name for p in self.shards()} == set(read_manifest(self.folder).shards)

    @invariant()
    def the_manifest_is_always_valid(self):
        assert store_info(self.folder)["columns"] == len(TRUE)


class LongStoreMachine(StoreMachine):
    """The same through more examples."""


SHORT = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
StoreMachine.TestCase.settings = SHORT
LongStoreMachine.TestCase.settings = settings(SHORT, max_examples=100)
TestStore = StoreMachine.TestCase
TestStoreForLong = pytest.mark.exhaustive(LongStoreMachine.TestCase)
