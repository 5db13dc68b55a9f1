"""A peer inside a lab that does what its standard input says: one JSON list a line, one JSON answer a line.

It can hold listeners and connections by name; ``echo`` listeners give back what they get.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

held: dict[str, socket.socket] = {}
records: dict[str, tuple[str, int]] = {}


def answer_names(server: socket.socket) -> None:
    import dns.message
    import dns.rcode
    import dns.rrset

    while True:
        wire, client = server.recvfrom(4096)
        query = dns.message.from_wire(wire)
        response = dns.message.make_response(query)
        name = query.question[0].name
        if found := records.get(name.to_text(omit_final_dot=True)):
            response.answer.append(dns.rrset.from_text(name, found[1], "IN", "A", found[0]))
        else:
            response.set_rcode(dns.rcode.NXDOMAIN)
        server.sendto(response.to_wire(), client)


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(1 << 18):
            connection.sendall(data)


def own_address(connection: socket.socket) -> None:
    """Say at which address this is."""
    with connection:
        connection.sendall(connection.getsockname()[0].encode())


def sink(connection: socket.socket) -> None:
    """Take a stream in; answer it with its length at its end."""
    with connection:
        total = 0
        while data := connection.recv(1 << 18):
            total += len(data)
        connection.sendall(str(total).encode())


def healthy(connection: socket.socket) -> None:
    """Say what an Envoy says that leads to an apiserver."""
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\ncluster.apiservers.membership_healthy: 1\n")


def at(own: str) -> object:
    """Echo, after one line that says which machine this is."""

    def handle(connection: socket.socket) -> None:
        connection.sendall(own.encode() + b"\n")
        echo(connection)

    return handle


def serve(listener: socket.socket, handle: object) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=handle, args=(connection,), daemon=True).start()


def comes_and_goes(address: str, port: int, end: float, seen: list[str]) -> None:
    """A client that connects again and again, stays for a moment, and is away for longer. ``seen``: the machine that
    answered each time, or how it failed.
    """
    while time.monotonic() < end:
        try:
            with socket.create_connection((address, port), timeout=10.0) as connection:
                message = connection.recv(64).decode().strip()
                time.sleep(0.05)
                connection.sendall(b"x")
                seen.append(message if connection.recv(1) == b"x" else "closed")
        except OSError as error:
            seen.append(repr(error))
        time.sleep(0.15)


def do(verb: str, *args: object) -> object:  # noqa: C901
    match verb, args:
        case ("listen", [str(address), int(port), kind]):
            listener = socket.create_server((address, port))
            handle = {"echo": echo, "sink": sink, "who": own_address}[str(kind)]
            threading.Thread(target=serve, args=(listener, handle), daemon=True).start()
            return "listening"
        case ("serves", [int(port), str(own), int(ready)]):
            listener = socket.create_server(("0.0.0.0", port))
            threading.Thread(target=serve, args=(listener, at(own)), daemon=True).start()
            if ready:
                listener = socket.create_server(("127.0.0.1", ready))
                threading.Thread(target=serve, args=(listener, healthy), daemon=True).start()
            return "listening"
        case ("close", [str(name)]):
            held.pop(name).close()
            return "closed"
        case ("connect", [str(name), str(address), int(port), float(timeout)]):
            began = time.monotonic()
            held[name] = socket.create_connection((address, port), timeout=timeout)
            held[name].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return time.monotonic() - began
        case ("come and go", [int(clients), str(address), int(port), float(seconds)]):
            seen: list[str] = []
            end = time.monotonic() + seconds
            threads = [threading.Thread(target=comes_and_goes, args=(address, port, end, seen)) for _ in range(clients)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            return seen
        case ("say", [str(name), str(text)]):
            return held[name].send(text.encode())
        case ("hear", [str(name), float(timeout)]):
            held[name].settimeout(timeout)
            return held[name].recv(65536).decode()
        case ("round", [str(name), float(timeout)]):
            began = time.monotonic()
            held[name].settimeout(timeout)
            held[name].sendall(b"x")
            held[name].recv(1)
            return time.monotonic() - began
        case ("stream", [str(name), int(size)]):
            began = time.monotonic()
            held[name].settimeout(60)
            piece = bytes(1 << 20)
            for _ in range(size >> 20):
                held[name].sendall(piece)
            held[name].shutdown(socket.SHUT_WR)
            taken = int(held[name].recv(64))
            return [taken, time.monotonic() - began]
        case ("bind", [str(name), str(address), int(port)]):
            held[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            held[name].bind((address, port))
            return "bound"
        case ("throw", [str(name), str(address), int(port), str(text)]):
            return held[name].sendto(text.encode(), (address, port))
        case ("dns", [str(address), int(port)]):
            held["dns"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            held["dns"].bind((address, port))
            threading.Thread(target=answer_names, args=(held["dns"],), daemon=True).start()
            return "answering"
        case ("record", [str(name), str(address), int(ttl)]):
            records[name] = (address, ttl)
            return "set"
        case ("daemon", []):
            if (pid := os.fork()) == 0:
                os.setsid()
                while True:
                    time.sleep(3600)
            return pid
        case _:
            raise ValueError(verb)


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            answer = {"ok": do(*json.loads(line))}
        except OSError as error:
            answer = {"error": type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
