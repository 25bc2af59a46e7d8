"""Sockets between every two ranks, and messages to and fro. No TensorFlow."""

import socket
import struct
import time
from collections.abc import Sequence
from statistics import median

TIMEOUT_S = 30.0
WARM_UP = 5  # messages before those that are timed: the other rank may still be with another
_HELLO = struct.Struct("!I")  # which rank connects

Address = tuple[str, int]


def partner(rank: int, number: int, ranks: int) -> int | None:
    """Return whom a rank meets in a round, None if it has a rest.

    In as many rounds as there are ranks, less one of an even number, every two meet once: the
    circle method of round-robin tournaments.
    """
    last = ranks - 1 + ranks % 2  # who is left over meets it; it is there if ranks are even
    other = (number - rank) % last if rank < last else number * ((last + 1) // 2) % last
    other = last if other == rank else other
    return other if other < ranks else None


def connect(
    server: socket.socket, addresses: Sequence[Address], rank: int
) -> dict[int, socket.socket]:
    """Return a socket to every other rank: each connects to those below it.

    Raises OSError, with the address, where one cannot be reached.
    """
    links = {}
    for other, address in enumerate(addresses[:rank]):
        try:
            link = socket.create_connection(address, TIMEOUT_S)
        except OSError as error:
            raise OSError(f"{address[0]} port {address[1]}: {error}") from None
        link.sendall(_HELLO.pack(rank))
        links[other] = link
    server.settimeout(TIMEOUT_S)
    while len(links) < len(addresses) - 1:
        link, _ = server.accept()
        link.settimeout(TIMEOUT_S)
        (other,) = _HELLO.unpack(receive(link, _HELLO.size))
        links[other] = link
    for link in links.values():
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return links


def receive(link: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes; OSError where the other end is gone."""
    content = bytearray(size)
    view, have = memoryview(content), 0
    while have < size:
        count = link.recv_into(view[have:])
        if not count:
            raise OSError("the other rank has closed its end")
        have += count
    return bytes(content)


def ask(link: socket.socket, size: int, messages: int) -> float:
    """Return half the median time (s) of messages to and fro."""
    content = bytes(size)
    seconds = []
    for _ in range(WARM_UP + messages):
        began = time.perf_counter()
        link.sendall(content)
        receive(link, size)
        seconds.append(time.perf_counter() - began)
    return median(seconds[WARM_UP:]) / 2


def answer(link: socket.socket, size: int, messages: int) -> None:
    """Send each message back."""
    for _ in range(WARM_UP + messages):
        link.sendall(receive(link, size))
