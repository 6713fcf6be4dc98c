"""Deliberate faults of the package, and what must notice each of them."""

from __future__ import annotations

from scripts.attack.mutations import Mutation

__all__ = ["FAULTS"]

_POWER = "attack --kinds power --parts save,export-onnx --n 60"
_SERVICE = "tests/service/"
_STORE = "tests/store/test_store.py::"

FAULTS = (
    # Files and folders.
    Mutation(
        "copy instead of replace", "machine/system.py",
        "            os.replace(source, target)\n",
        '            __import__("shutil").copyfile(source, target)\n'
        "            os.unlink(source)\n",
        "attack --kinds kills --parts save --n 40",
    ),
    Mutation(
        "no flush of a file", "machine/system.py",
        '    with open(path, "r+b") as handle:\n        os.fsync(handle.fileno())\n',
        "    return\n",
        _POWER,
    ),
    Mutation(
        "no flush of a folder", "machine/system.py",
        "    try:\n        handle = os.open(path, os.O_RDONLY)\n",
        "    return\n    try:\n        handle = os.open(path, os.O_RDONLY)\n",
        _POWER,
    ),
    Mutation(
        "no flush of the folder of a new folder", "machine/system.py",
        "    for one in reversed(missing):\n        sync_folder(one.parent)\n",
        "",
        _POWER,
    ),
    Mutation(
        "no flush of what a new folder holds", "files/durable.py",
        "            sync_tree(partial)\n",
        "",
        "tests/test_mutations.py::test_a_new_folder_survives_lost_power",
    ),
    Mutation(
        "written under its last name", "files/durable.py",
        "            yield partial\n            move_into_place(partial, final)\n",
        "            yield final\n",
        "attack --kinds kills --parts save --n 40",
    ),
    Mutation(
        "partial files stay", "files/durable.py",
        "        if process.isdigit() and not is_running(int(process)):\n",
        "        if False:\n",
        "attack --kinds kills --parts save --n 40",
    ),
    Mutation(
        "a full disk is no error", "files/durable.py",
        '            raise StorageError(f"{path}: {error.strerror}; free space and run it again") '
        "from error\n",
        "            return\n",
        "attack --kinds full-disk --parts save --n 40",
    ),
    Mutation(
        "an error ends with 0", "cli/main.py",
        "    return _ERROR\n",
        "    return 0\n",
        "attack --kinds full-disk --parts export-onnx --n 40",
    ),
    # Results of a command that was stopped.
    Mutation(
        "the record is ahead of the results", "batch/resumed_file.py",
        "        self._file.flush()\n        os.fsync(self._file.fileno())\n        write_text",
        "        write_text",
        "tests/batch/test_resumed_file.py",
    ),
    Mutation(
        "resuming skips an input", "batch/resumed_file.py",
        "        done = list(itertools.islice(names, self._record.inputs))\n",
        "        done = list(itertools.islice(names, self._record.inputs))\n"
        "        next(names, None) if done else None\n",
        "tests/batch/test_resumed_file.py",
    ),
    Mutation(
        "resuming skips a part", "batch/extraction.py",
        "    start = parts[-1].stop if parts else 0\n",
        "    start = parts[-1].stop + 1 if parts else 0\n",
        "tests/batch/test_extraction.py",
    ),
    Mutation(
        "parts of other images count", "batch/extraction_parts.py",
        " or first_change(part.contents, tried, n_jobs) is not None:\n",
        ":\n",
        "tests/batch/test_extraction.py",
    ),
    Mutation(
        "a checkpoint of another run counts", "learners/checkpoint.py",
        "        if written != identity:\n",
        "        if False:\n",
        "tests/learners/test_checkpoint.py",
    ),
    Mutation(
        "a folder without a run's mark is taken", "recipes/folder.py",
        "    if not _is_marked(folder):\n",
        "    if False:\n",
        "tests/recipes/test_folder.py",
    ),
    Mutation(
        "no lock", "store/writer_lock.py",
        "        lock.acquire()\n",
        "        pass\n",
        f"{_STORE}test_one_writer_at_a_time",
    ),
    # Damaged files.
    Mutation(
        "no digest of shards", "store/shards.py",
        " or file_digest(path) != entry.blake3:\n",
        ":\n",
        f"{_STORE}test_damage_that_keeps_size_and_time_is_found",
    ),
    Mutation(
        "no digest of tensors", "files/tensors.py",
        "        if header.pop(_CHECKSUM, None) != spec_fingerprint(header, arrays):\n",
        "        if header.pop(_CHECKSUM, None) is None:\n",
        "attack --kinds flips --n 200",
    ),
    Mutation(
        "no digest of a manifest", "store/manifest.py",
        'values.pop("sha256", None) != spec_fingerprint(values, {})',
        'values.pop("sha256", None) is None',
        f"{_STORE}test_a_damaged_manifest_is_refused",
    ),
    # Files and names from strangers.
    Mutation(
        "arrays may be pickled", "datasets/readers/npz.py",
        "np.load(handle, allow_pickle=False)",
        "np.load(handle, allow_pickle=True)",
        "tests/datasets/test_datasets.py::test_npz_with_objects_or_a_bomb_is_refused",
    ),
    Mutation(
        "links of a tar are followed", "datasets/readers/tars.py",
        "            if not member.isreg() or member.issparse() or is_left:\n",
        "            if member.isdir() or member.issparse() or is_left:\n",
        "tests/datasets/readers/test_registry.py::test_links_of_a_tar_are_not_followed",
    ),
    Mutation(
        "a recipe's name may be a path", "recipes/schema.py",
        "        if not _NAME.fullmatch(name):\n",
        "        if not name:\n",
        "tests/recipes/test_folder.py::test_names_of_recipes_are_names",
    ),
    Mutation(
        "markup is not escaped", "reports/report.py",
        "        autoescape=True,",
        "        autoescape=False,",
        "tests/reports/test_report.py::test_names_from_strangers_are_escaped",
    ),
    Mutation(
        "cells may be formulas", "cli/text.py",
        "    if len(text) < 2 or not text.startswith(_FORMULA):\n",
        "    if True:\n",
        "tests/cli/test_names.py::test_cells_are_no_formulas",
    ),
    Mutation(
        "no limit of pixels", "datasets/opening.py",
        "        if width * height > self.max_pixels:\n",
        "        if False:\n",
        "attack --kinds images --n 300",
    ),
    # Requests.
    Mutation(
        "any token will do", "service/access.py",
        "        return same and scheme.lower()",
        "        return scheme.lower()",
        f"{_SERVICE}test_attacks.py::test_hosts_and_tokens",
    ),
    Mutation(
        "any host will do", "service/access.py",
        "        return bool(name) and (name in self._hosts or _is_address(name, server))\n",
        "        return bool(name)\n",
        f"{_SERVICE}test_attacks.py::test_hosts_and_tokens",
    ),
    Mutation(
        "two hosts will do", "service/access.py",
        "        if len(hosts) > 1:\n",
        "        if False:\n",
        f"{_SERVICE}test_service.py::"
        "test_what_a_proxy_may_read_otherwise_is_refused_before_the_body",
    ),
    Mutation(
        "health waits in the queue", "service/application.py",
        "        if method == \"GET\":\n",
        "        if worker.is_full:\n            return _refused(path, busy(), True)\n"
        "        if method == \"GET\":\n",
        f"{_SERVICE}test_connections.py::test_health_is_answered_where_the_queue_is_full",
    ),
    Mutation(
        "no end of the queue", "service/worker.py",
        "        return self.running >= self.limits.threads + self.limits.max_queue\n",
        "        return False\n",
        f"{_SERVICE}test_connections.py::test_health_is_answered_where_the_queue_is_full",
    ),
    Mutation(
        "no deadline of a body", "service/bodies.py",
        "                await asyncio.wait({task}, timeout=timeout)\n",
        "                await asyncio.wait({task})\n",
        f"{_SERVICE}test_connections.py::test_late_clients_are_left",
    ),
    Mutation(
        "no limit of a body", "service/bodies.py",
        "            if size > max_bytes:\n",
        "            if False:\n",
        f"{_SERVICE}test_service.py::test_a_body_without_a_length_is_cut_off_while_it_comes",
    ),
    Mutation(
        "no limit of chunks", "service/bodies.py",
        "            if n_parts > _FREE_PARTS + size // _PART:\n",
        "            if False:\n",
        f"{_SERVICE}test_service.py::test_a_body_in_tiny_parts_is_refused_in_time",
    ),
)  # fmt: skip
