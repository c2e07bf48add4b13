"""Ports of loopback for programs that are given their port's number."""

import socket


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
