"""Addresses of webhooks: https, public ones, and the connection goes to what was checked."""

import ipaddress
import socket
import ssl
import time
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fakes.receiver import ALLOWED, NAME, Receiver, loopback
from tests.fakes.waiting import wait_for

from bench_server.webhooks import addresses, sending
from bench_server.webhooks.addresses import RefusedAddress, Target
from bench_server.webhooks.sending import NotDelivered


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return tmp_path / "receiver.pem"


def post(receiver: Receiver, certificate: Path, **changed: Any) -> None:
    arguments: dict[str, Any] = {
        "url": receiver.url,
        "private_hosts": ALLOWED,
        "context": ssl.create_default_context(cafile=str(certificate)),
        "resolve": loopback,
    }
    sending.post(body=b"{}", headers={"webhook-id": "msg_1"}, **(arguments | changed))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255"),
        *("192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "169.254.0.1"),
        *("192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
        *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "fe80::1", "fc00::1"),
        *("fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "2002:7f00:1::1", "2001::1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1", "4000::1"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert addresses.refused(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_is_not_refused(address: str) -> None:
    assert addresses.refused(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://receiver.test/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("https:///path", "https://"),
        ("https://user@receiver.test/", "a user or a password"),
        ("https://:pass@receiver.test/", "a user or a password"),
        ("https://receiver.test/#part", "a fragment"),
        ("https://receiver.test/a b", "a space"),
        ("https://receiver.test/\r\nX: y", "a space"),
        ("https://empfänger.test/", "outside of ASCII"),
        ("https://receiver.test:99999/", "[Pp]ort"),
        ("https://[::1/", "Invalid"),
        (f"https://receiver.test/{'a' * 400}", "422 characters, 400 are allowed"),
    ],
)
def test_a_wrong_url_is_refused(url: str, says: str) -> None:
    with pytest.raises(RefusedAddress, match=says):
        addresses.target(url)


def test_the_parts_of_a_url() -> None:
    assert addresses.target("https://Receiver.test?a=1") == Target("receiver.test", 443, "/?a=1")
    assert addresses.target("https://[2606::1]:8443/x") == Target("2606::1", 8443, "/x")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0"),
        *("[::1]", "[::ffff:127.0.0.1]", "localhost", "localhost."),
    ],
)
def test_the_servers_own_machine_is_not_reached(
    receiver: Receiver, certificate: Path, host: str
) -> None:
    with pytest.raises(NotDelivered):
        post(
            receiver,
            certificate,
            url=f"https://{host}:{receiver.port}/",
            resolve=addresses.resolve_name,
        )
    assert receiver.received == []


def test_one_private_address_of_several_is_enough_to_refuse(
    receiver: Receiver, certificate: Path
) -> None:
    def both(host: str, port: int) -> list[tuple[Any, ...]]:
        public = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))
        return [public, *loopback(host, port)]

    with pytest.raises(NotDelivered, match=r"127\.0\.0\.1: it is not public"):
        post(receiver, certificate, private_hosts=frozenset(), resolve=both)


def test_the_connection_goes_to_the_checked_address(receiver: Receiver, certificate: Path) -> None:
    """``receiver.test`` exists in no name service, and is resolved once."""
    asked = []

    def once(host: str, port: int) -> list[tuple[Any, ...]]:
        asked.append(host)
        return loopback(host, port)

    post(receiver, certificate, resolve=once)
    assert asked == [NAME]
    ((path, headers, body),) = receiver.received
    assert (path, body) == ("/secret-path?key=1", b"{}")
    assert headers["host"] == f"{NAME}:{receiver.port}"
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (307, "^status 307: redirects are not followed$"),
        (404, "^status 404$"),
        ("hang", "^no answer within 1 s$"),
        ("drip", "^no answer within 1 s$"),
        ("drop", "closed connection without response"),
    ],
)
def test_a_receiver_that_misbehaves_has_not_accepted(
    receiver: Receiver,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: int | str,
    says: str,
) -> None:
    receiver.behave = lambda _: behaviour
    if behaviour in ("hang", "drip"):
        monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 1)
    with pytest.raises(NotDelivered, match=says) as caught:
        post(receiver, certificate)
    assert not caught.value.gone
    assert len(receiver.received) <= 1  # a busy machine may not even connect in a second
    assert "secret-path" not in str(caught.value)


def test_a_receiver_that_is_gone_says_so(receiver: Receiver, certificate: Path) -> None:
    receiver.behave = lambda _: 410
    with pytest.raises(NotDelivered) as caught:
        post(receiver, certificate)
    assert caught.value.gone


def test_a_connection_made_after_its_end_begins_no_tls() -> None:
    """The timer comes once: a connection that it did not see would never be cut."""

    class NoTls:
        def wrap_socket(self, *_: Any, **__: Any) -> None:
            pytest.fail("TLS began")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = addresses.Endpoint(socket.AF_INET, listening.getsockname())
        ends, context = time.monotonic(), cast(ssl.SSLContext, NoTls())
        connection = sending.CheckedConnection(NAME, endpoint.address[1], [endpoint], ends, context)
        assert wait_for(lambda: connection.cut, 60)
        with pytest.raises(TimeoutError):
            connection.connect()
        connection.close()


def test_a_certificate_of_another_is_refused(receiver: Receiver, certificate: Path) -> None:
    with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
        post(receiver, certificate, context=ssl.create_default_context())
    other = f"https://other.test:{receiver.port}/"
    with pytest.raises(NotDelivered, match="Hostname mismatch"):
        post(receiver, certificate, url=other, private_hosts=frozenset({"other.test"}))
    assert receiver.received == []
