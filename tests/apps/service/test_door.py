"""Connections that say nothing cost no protocol, and are limited as all are."""

import asyncio
import contextlib
import errno
import socket

import pytest

from visionshare.apps.service.door import Door
from visionshare.apps.service.limits import Limits
from visionshare.apps.service.room import Room, Stage


class Reading(asyncio.Protocol):
    """Notes its transport and what it got."""

    def __init__(self):
        self.got = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.got.set_result(data)


class Failing:
    """A listener for which the system has no descriptor at first."""

    def __init__(self, listener):
        self.listener, self.failures = listener, 1
        self.fileno, self.setblocking = listener.fileno, listener.setblocking

    def accept(self):
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "no more descriptors")
        return self.listener.accept()


@contextlib.asynccontextmanager
async def opened(wrap=lambda listener: listener, kind=None, **limits):
    """Yield a function that connects a client, the protocols that were made, and the door."""
    made, clients, room = [], [], Room(Limits(**limits))

    def protocol():
        made.append(kind(room) if kind else Reading())
        return made[-1]

    async def connect():
        client = socket.socket()
        client.setblocking(False)
        clients.append(client)
        await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
        return client

    with socket.create_server(("127.0.0.1", 0)) as listener:
        door = Door(wrap(listener), room, protocol)
        door.open()
        try:
            yield connect, made, door
        finally:
            door.close()
            for client in clients:
                client.close()
            for one in made:
                one.transport.abort()
            await asyncio.sleep(0)


async def received(client):
    """Return what the client gets, which is nothing when it is closed."""
    with contextlib.suppress(ConnectionResetError):
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 99), 60)
    return b""


async def until(condition):
    async def turns():
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(turns(), 60)


def test_a_protocol_is_made_with_the_first_byte():
    async def scenario():
        async with opened() as (connect, made, _):
            quiet, talking = await connect(), await connect()
            await asyncio.get_running_loop().sock_sendall(talking, b"abc")
            await until(lambda: made)
            assert await made[0].got == b"abc"
            connection = made[0].transport.get_extra_info("socket")
            # Otherwise answers of two parts wait for the client.
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await asyncio.get_running_loop().sock_sendall(quiet, b"x")
            await until(lambda: len(made) == 2)
            assert await made[1].got == b"x"

    asyncio.run(scenario())


def test_the_connection_that_is_quiet_longest_gives_way():
    async def scenario():
        async with opened(max_connections=2) as (connect, made, _):
            clients = [await connect() for _ in range(5)]
            for closed in clients[:3]:
                assert await received(closed) == b""
            for client in clients[3:]:
                await asyncio.get_running_loop().sock_sendall(client, b"x")
            await until(lambda: len(made) == 2)

    asyncio.run(scenario())


def test_quiet_connections_end_after_a_while_and_with_their_client():
    async def scenario():
        async with opened(header_timeout=0.3, max_connections=1) as (connect, made, _):
            assert await received(await connect()) == b""
            (await connect()).close()
            # Taken in after the one that ended, or in its place.
            talking = await connect()
            await asyncio.get_running_loop().sock_sendall(talking, b"x")
            await until(lambda: made)
            assert await made[0].got == b"x"
            assert len(made) == 1

    asyncio.run(scenario())


def test_without_descriptors_it_accepts_again_later(caplog):
    async def scenario():
        async with opened(Failing) as (connect, made, _):
            client = await connect()
            await asyncio.get_running_loop().sock_sendall(client, b"x")
            await until(lambda: made)
            assert await made[0].got == b"x"

    asyncio.run(scenario())
    assert caplog.text.count("cannot be accepted") == 1


def test_a_closed_door_leaves_nobody_quiet_inside():
    async def scenario():
        async with opened(max_connections=1) as (connect, _, door):
            first, second = await connect(), await connect()
            assert await received(first) == b""
            door.close()
            assert await received(second) == b""

    asyncio.run(scenario())


class Guest:
    """A connection that notes that it was closed."""

    closed = False

    def displace(self):
        self.closed = True


@pytest.mark.parametrize(
    ("stages", "goes"),
    [
        ([Stage.WAITING, Stage.WAITING], 0), ([Stage.RECEIVING, Stage.WAITING], 1),
        ([Stage.RECEIVING, Stage.RECEIVING], 0), ([Stage.ANSWERING, Stage.RECEIVING], 1),
        ([Stage.WAITING, Stage.CLOSING], 1), ([Stage.ARRIVING, Stage.WAITING], 1),
        ([Stage.ARRIVING, Stage.RECEIVING], 1),
    ],
)  # fmt: skip
def test_who_gives_way(stages, goes):
    room = Room(Limits(max_connections=2))
    guests = [Guest(), Guest()]
    for guest, stage in zip(guests, stages, strict=True):
        assert room.enter(guest)
        room.move(guest, stage)
    assert room.enter(Guest())
    assert [guest.closed for guest in guests] == [goes == 0, goes == 1]
    assert len(room) == 2
    assert not room.is_full


def test_nobody_who_is_answered_gives_way():
    room = Room(Limits(max_connections=1, health_reserve=2))
    guests = [Guest() for _ in range(4)]
    taken = []
    for guest in guests:
        taken.append(room.enter(guest))
        room.move(guest, Stage.ANSWERING)
    assert taken == [True, True, True, False]
    assert room.is_full
    assert not any(guest.closed for guest in guests)
    for guest in guests:
        assert room.leave(guest) == taken.pop(0)
    assert len(room) == 0


def test_a_new_one_waits_for_those_that_arrive_alone():
    room = Room(Limits(max_connections=2))
    first, second = Guest(), Guest()
    room.enter(first)
    assert not room.must_wait
    room.enter(second)
    assert room.must_wait
    room.move(first, Stage.ANSWERING)
    assert room.must_wait
    room.move(second, Stage.WAITING)
    assert not room.must_wait
    room.move(second, Stage.ANSWERING)
    # Nothing will change soon: the reserve is asked.
    assert not room.must_wait


class Occupying(Reading):
    """In the room as the service's connections are."""

    def __init__(self, room):
        super().__init__()
        self.room = room
        self.is_in = room.enter(self)

    def data_received(self, data):
        self.room.move(self, Stage.RECEIVING)
        super().data_received(data)

    def displace(self):
        self.transport.abort()


def test_one_whose_request_is_there_is_read_however_many_come_with_it():
    async def scenario():
        async with opened(kind=Occupying, max_connections=3) as (connect, made, _):
            address = (await connect()).getpeername()
            # All have sent something before the first is accepted.
            clients = [socket.create_connection(address) for _ in range(40)]
            for number, client in enumerate(clients):
                client.sendall(bytes([number]))
            await until(lambda: len(made) == 40)
            assert all(protocol.is_in for protocol in made)
            got = [await asyncio.wait_for(protocol.got, 60) for protocol in made]
            assert got == [bytes([number]) for number in range(40)]
            for client in clients:
                client.close()

    asyncio.run(scenario())
