"""The benchmark of the service in its shortest form; figures are not compared with anything."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.service import attacks, probe, running
from benchmarks.service.pictures import mixed_requests

SAMPLE = Path(__file__).parent / "archives" / "digits-v1.safetensors"


def measured(capsys, *options):
    running.main([*options, "--classifier", str(SAMPLE), "--json"])
    return json.loads(capsys.readouterr().out)


def test_speed_is_that_of_both_servers_at_all_connections(capsys):
    rows = measured(capsys, "speed", "--seconds", "0.2", "--rounds", "1")["speed"]
    kinds = {(row["request"], row["connections"]) for row in rows}
    names = [f"{path}, {body}" for path in ("/echo", "/predict") for body in ("PNG", "JSON")]
    assert kinds == {(name, n) for name in names for n in (1, 8, 64)}
    assert all(row["per_second"] > 0 and row["median"] <= row["high"] for row in rows)


@pytest.mark.exhaustive
def test_memory_is_read_after_each_part(capsys):
    rows = measured(capsys, "memory", "--requests", "40", "--parts", "2")["memory"]
    assert [row["requests"] for row in rows] == [0, 20, 40]
    assert sum(rows[-1]["answered"].values()) == 40
    assert all(0 < row["anonymous"] <= row["resident"] <= row["peak"] for row in rows)


def test_an_attack_leaves_nobody_without_answer(capsys):
    (row,) = measured(capsys, "attacks", "--attacks", "half-closed clients")["attacks"]
    assert row["attack"] == "half-closed clients"
    for who in ("health", "predict", "echo", "late"):
        assert row[who]["asked"] > row[who]["failed"] == 0


@pytest.mark.exhaustive
def test_the_service_lives_through_stops_reloads_and_killed_workers(capsys):
    options = ("--starts", "2", "--reloads", "1", "--kills", "1")
    rows = measured(capsys, "lives", *options)["lives"]
    assert [(row["tries"], row["well"]) for row in rows] == [(2, 2), (1, 1), (1, 1)]
    assert all(row["answers"] for row in rows)


def test_an_attack_that_does_not_end_is_given_up_and_named(capsys):
    with (
        running.servers(SAMPLE) as (server, plain),
        pytest.raises(SystemExit, match="'none' did not end"),
    ):
        attacks.attacked(server, plain, "none", longest=0.1)


def test_a_probe_ends_though_an_action_swallows_that_it_is_cancelled():
    async def swallowing():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    async def cut():
        ended = asyncio.Event()
        taken = []
        task = asyncio.ensure_future(probe.sample(taken, ended, swallowing))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.set()
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.done()
        return taken

    assert len(asyncio.run(cut())) == 1


def test_requests_of_the_long_run_are_the_same_each_time():
    first, again = mixed_requests(60), mixed_requests(60)
    assert first == again
    assert {kind.split(";")[0] for kind, _ in first} == {
        "image/png", "image/jpeg", "application/json", "multipart/form-data",
    }  # fmt: skip
