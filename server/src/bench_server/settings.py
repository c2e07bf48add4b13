"""Settings of the server, read once at the start: from ``BENCH_SERVER_*``, else from files of
these names in ``BENCH_SERVER_SECRETS_DIR``."""

import difflib
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import limits
import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)
from sqlalchemy import make_url

from .price_list import PriceList, read

PREFIX = "BENCH_SERVER_"
SECRETS = f"{PREFIX}SECRETS_DIR"
DEFAULT_ORIGIN = "trainmark.localhost"


def default_database_url() -> str:
    return f"sqlite:///{Path(platformdirs.user_data_dir('trainmark')) / 'server.db'}"


def _rate(text: str) -> str:
    if text != "off" and limits.parse(text).amount < 1:
        raise ValueError("a rate of 0 refuses every request")
    return text


def _proxies(text: str) -> str:
    # uvicorn takes unreadable entries for socket names and trusts no proxy.
    for part in filter(None, map(str.strip, text.split(","))):
        ipaddress.ip_network(part)
    return text


def _folder(path: Path | None) -> Path | None:
    if path is not None and path.exists() and not path.is_dir():
        raise ValueError("there is a file of this name")
    return path


def _prices(value: object) -> object:
    return read(value) if isinstance(value, str | Path) else value


def _existing(path: Path | None) -> Path | None:
    if path is not None and not path.is_dir():
        raise ValueError("there is no such folder")
    return path


RateLimit = Annotated[str, AfterValidator(_rate)]
Proxies = Annotated[str, AfterValidator(_proxies)]
Prices = Annotated[PriceList | None, BeforeValidator(_prices)]
Folder = Annotated[Path | None, AfterValidator(_folder)]
ExistingFolder = Annotated[Path | None, AfterValidator(_existing)]


class Settings(BaseSettings):
    """Every setting of the server; each is read from the environment variable of its name in
    capitals, else from the file of this name in ``secrets_dir``.

    The text below each lists the valid values; it is shown if a value is invalid.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", use_attribute_docstrings=True
    )

    # A database's address and the token are secrets.
    database_url: str = Field(default_factory=default_database_url, repr=False)
    """SQLAlchemy address: sqlite:///PATH, or postgresql+psycopg://USER@HOST/NAME"""
    host: str = "127.0.0.1"
    """address to listen on"""
    port: int = Field(default=8000, ge=0, le=65535)
    """a port, 0 to 65535; 0 takes a free one"""
    workers: int = Field(default=1, ge=1, le=64)
    """number of processes that serve, 1 to 64; each counts rates by itself"""
    project: Literal["yes", "no"] = "yes"
    """yes: this server also applies new log entries to the boards, unless another one does; no:
    bench-server project does"""
    read_only: Literal["yes", "no"] = "no"
    """yes: everything can be read, and what agents post gets 503, so that they keep it; no: it
    accepts"""
    recompute: Literal["auto", "yes", "no"] = "auto"
    """yes: this server starts a process that recomputes readings; no: bench-server recompute
    does; auto: yes on SQLite"""
    recompute_seconds: float = Field(default=600, ge=0, le=86_400)
    """processor seconds that are recomputed for a key each day, at most 86400; beyond them one
    job in ten"""
    data_dir: ExistingFolder = None
    """an existing folder with the real data sets that sessions are recomputed on;
    BENCH_DATA_DIR=FOLDER bench-agent data fetch fills one"""
    origin: str = Field(default=DEFAULT_ORIGIN, pattern=r"^[^\s+]{1,200}$")
    """address under which the log is known, without https://, 1 to 200 characters without
    spaces and +; never change it"""
    keys_dir: Path | None = None
    """folder of the server's own keys; default server-keys beside an SQLite file"""
    enrollment: Literal["open", "invite", "approval"] = "open"
    """who may enroll a key: open (anyone), invite or approval"""
    challenge_hours: float = Field(default=24, gt=0, le=720)
    """hours a challenge stays fresh, more than 0, at most 720"""
    license: str = Field(default="CC-BY-4.0", max_length=64, pattern=r"^[A-Za-z0-9.+-]+$")
    """licence under which results are published, an SPDX identifier of at most 64 characters,
    such as CC-BY-4.0"""
    address_rate: RateLimit = "1200/minute"
    """requests and lines of batches an address may send, such as 20/second, or off"""
    key_rate: RateLimit = "1200/minute"
    """results a key may submit, such as 20/second, or off for no limit"""
    enroll_rate: RateLimit = "20/day"
    """keys an address may enroll without an invitation, such as 20/day, or off for no limit"""
    challenge_rate: RateLimit = "600/hour"
    """challenges an address may ask for, such as 600/hour, or off for no limit"""
    act_rate: RateLimit = "300/hour"
    """acts, rotations and revocations a key may send, such as 300/hour, or off for no limit"""
    trusted_proxies: Proxies = ""
    """addresses or networks whose X-Forwarded-For is believed, with commas: 10.0.0.7,
    10.1.0.0/16 (its host bits zero); 0.0.0.0/0, ::/0 for every proxy"""
    header_seconds: float = Field(default=10, gt=0, le=600)
    """seconds in which a request's headers must be complete, more than 0, at most 600"""
    body_seconds: float = Field(default=30, gt=0, le=3600)
    """seconds in which a request's body must be complete, more than 0, at most 3600"""
    address_connections: int = Field(default=256, ge=1, le=65_536)
    """connections that an address may have open in each process, 1 to 65536"""
    read_token: str | None = Field(default=None, repr=False, min_length=16)
    """token without which nothing can be read, 16 characters or more"""
    baseline: str | None = Field(default=None, pattern=r"^[^\s/]{1,400}$")
    """slug of the measured hardware that speed-ups and scores are relative to, as in
    /hardware/SLUG; without it the hardware on most boards"""
    witnesses: str = ""
    """witnesses (C2SP tlog-witness) that cosign the daily checkpoint: a verifier key and an
    address in turn, separated by spaces"""
    prices: Prices = None
    """TOML file with currency, date, [hardware] prices by slug and energy_per_kwh"""
    dumps_dir: Folder = None
    """folder of the daily dumps, which are served under /dumps"""
    site_name: str = Field(default="Trainmark", max_length=60)
    """name shown on pages, at most 60 characters"""
    secrets_dir: ExistingFolder = None
    """a folder whose files are settings: a file BENCH_SERVER_DATABASE_URL holds what the
    variable of this name would; variables come first"""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the folder of secrets."""
        folder = os.environ.get(SECRETS, "")
        if not folder or not Path(folder).is_dir():  # the field's own check names a wrong one
            return init_settings, env_settings
        return init_settings, env_settings, SecretsSettingsSource(settings_cls, folder)

    @property
    def proxies(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        parts = filter(None, map(str.strip, self.trusted_proxies.split(",")))
        return tuple(ipaddress.ip_network(part) for part in parts)

    @property
    def origin_fits(self) -> bool:
        """Whether the log's name is the operator's choice, or nobody else can reach the server."""
        try:
            local = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            local = self.host == "localhost"
        return "origin" in self.model_fields_set or (local and not self.trusted_proxies)

    @property
    def recomputes(self) -> bool:
        sqlite = make_url(self.database_url).get_backend_name() == "sqlite"
        return self.recompute == "yes" or (self.recompute == "auto" and sqlite)

    @property
    def keys_folder(self) -> Path:
        url = make_url(self.database_url)
        if self.keys_dir is not None:
            return self.keys_dir
        if url.get_backend_name() == "sqlite" and url.database:
            return Path(url.database).resolve().parent / "server-keys"
        return Path(platformdirs.user_data_dir("trainmark")) / "server-keys"


def child_environment(settings: Settings) -> dict[str, str]:
    """The variables of a process that this one starts, which then reads the same settings.

    The database's address is added only where an option gave it: one from a file has a password
    that no environment should hold.
    """
    given = {f"{PREFIX}KEYS_DIR": str(settings.keys_folder)}
    if Settings().database_url != settings.database_url:
        given[f"{PREFIX}DATABASE_URL"] = settings.database_url
    return os.environ | given


def secret_names() -> list[str]:
    """The names of the files in the folder of secrets; none where it cannot be listed."""
    folder = os.environ.get(SECRETS)
    try:
        return [path.name for path in Path(folder).iterdir()] if folder else []
    except OSError:
        return []


def unknown(names: Iterable[str]) -> str | None:
    """The message about the first variable that looks like a setting but is unknown, or None."""
    settings = [name.upper() for name in Settings.model_fields]
    for variable in sorted(names):
        name = variable.upper().removeprefix(PREFIX)
        if name != variable.upper() and name not in settings:
            near = difflib.get_close_matches(name, settings, n=1)
            if near:
                return f"{variable}: no such setting; did you mean {PREFIX}{near[0]}?"
            return f"{variable}: no such setting; after {PREFIX} there are {', '.join(settings)}"
    return None
