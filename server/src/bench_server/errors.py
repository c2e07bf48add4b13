"""Errors for refused requests, each with its HTTP status. :mod:`.web.problems` is their HTTP
form."""

from collections.abc import Sequence

from bench_protocol.base.errors import ProtocolError


class Refusal(ProtocolError):
    """The base of refused requests. ``status``: the HTTP status of the answer."""

    status = 400


class KeyNotActive(Refusal):
    """The key is enrolled but may not sign this."""

    code, status = "key_not_active", 403


class NotInvited(Refusal):
    """This server enrolls by invitation; the invitation is missing or used."""

    code, status = "not_invited", 403


class NotYours(Refusal):
    """The key may not do this."""

    code, status = "not_yours", 403


class UnknownName(Refusal):
    """The base of refused names. ``near``: existing names that are like the wanted one."""

    def __init__(
        self, detail: str, *, field: str = "", hint: str = "", near: Sequence[str] = ()
    ) -> None:
        super().__init__(detail, field=field, hint=hint)
        self.near = near


class NotFound(UnknownName):
    """There is nothing at this address."""

    code, status = "not_found", 404


class Conflict(Refusal):
    """The server has another payload for the same repeat, or with the same id."""

    code, status = "conflict", 409


class Gone(Refusal):
    """The sender withdrew the result."""

    code, status = "gone", 410


class BodyTooLarge(Refusal):
    """The body is larger than the limit."""

    code, status = "body_too_large", 413


class WrongMediaType(Refusal):
    """The media type of the body is not accepted here."""

    code, status = "wrong_media_type", 415


class InvalidQuery(UnknownName):
    """A parameter of the address is outside its limits."""

    code, status = "invalid_query", 422


class TooManyRequests(Refusal):
    """A client or key has exceeded its rate limit. ``name``: who may do what, as in "a key may
    send"."""

    code, status = "too_many_requests", 429

    def __init__(self, name: str, limit: str, retry_after_seconds: int) -> None:
        super().__init__(
            f"{name} {limit}",
            field="rate",
            hint=f"try again in {retry_after_seconds} s",
        )
        self.retry_after_seconds = retry_after_seconds


class ReadOnly(Refusal):
    """The operator has set the server to accept nothing for now."""

    code, status = "read_only", 503
    # Longer than the agent's retry limit, so it stops and keeps its outbox.
    retry_after_seconds = 600

    def __init__(self) -> None:
        super().__init__("this server is read-only for now", field="method", hint="try again later")


class DamagedDatabase(Refusal):
    """A stored row cannot be read. ``what``: a phrase for the server's log."""

    code, status = "database_damaged", 500

    def __init__(self, what: str) -> None:
        super().__init__(
            "a stored row cannot be read: the server's database is damaged",
            hint="tell the server's operator; bench-server verify-log says what is damaged",
        )
        self.what = what

    def __str__(self) -> str:
        return f"the database is damaged: {self.what}"


class NotReady(Refusal):
    """The server cannot do this now: the database needs a migration."""

    code, status = "not_ready", 503
    retry_after_seconds = 5


class TooManyBytes(Refusal):
    """The bodies of requests that are not answered yet have too many bytes. ``name``: who may do
    what, as in "an address may send"."""

    code, status = "too_many_bytes", 503
    retry_after_seconds = 5

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"{name} {most >> 20} MiB at a time",
            field="body",
            hint="wait for the answers to other requests, then send it again",
        )


class TooManyExports(Refusal):
    """The server sends as many exports at once as it may, or as a network may get."""

    code, status = "too_many_exports", 503
    retry_after_seconds = 30

    def __init__(self, most: int, each: int) -> None:
        super().__init__(
            f"this server sends {most} exports at a time, {each} of them to an address, and others "
            "are being sent",
            field="path",
            hint="try again later, or take the newest daily dump (GET /api/v1/dumps)",
        )
