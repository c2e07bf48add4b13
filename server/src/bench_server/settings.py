"""Settings, read once at the start from ``BENCH_SERVER_*``."""

from pathlib import Path
from typing import Annotated, Literal

import limits
import platformdirs
from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import make_url


def default_database_url() -> str:
    """SQLite in the user's data folder."""
    return f"sqlite:///{Path(platformdirs.user_data_dir('trainmark')) / 'server.db'}"


def _rate(text: str) -> str:
    if text != "off" and limits.parse(text).amount < 1:
        raise ValueError("a rate of none lets nobody in; say off for no limit")
    return text


RateLimit = Annotated[str, AfterValidator(_rate)]


class Settings(BaseSettings):
    """Every setting of the server; each is the environment variable of its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="BENCH_SERVER_", extra="ignore")

    database_url: str = Field(
        default_factory=default_database_url,
        description="SQLAlchemy address: sqlite:///PATH, or postgresql+psycopg://USER@HOST/NAME",
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port; 0 takes a free one")
    workers: int = Field(
        default=1, ge=1, le=64, description="processes that serve; each counts rates by itself"
    )
    origin: str = Field(
        default="trainmark.localhost",
        pattern=r"^[^\s+]{1,200}$",
        description="address under which the log is known, without https://; never change it",
    )
    keys_dir: Path | None = Field(
        default=None,
        description="folder of the server's own keys; default server-keys beside an SQLite file",
    )
    enrollment: Literal["open", "invite", "approval"] = Field(
        default="open", description="who may enroll a key: anyone, the invited, the approved"
    )
    challenge_hours: float = Field(
        default=24, gt=0, le=720, description="how long a challenge stays fresh, in hours"
    )
    license: str = Field(
        default="CC-BY-4.0",
        max_length=64,
        pattern=r"^[A-Za-z0-9.+-]+$",
        description="licence under which results are published, an SPDX identifier",
    )
    address_rate: RateLimit = Field(
        default="1200/minute", description="requests an address may send, such as 20/second, or off"
    )
    key_rate: RateLimit = Field(
        default="1200/minute", description="results a key may submit, or off"
    )
    trusted_proxies: str = Field(
        default="",
        description="addresses or networks, with commas, whose X-Forwarded-For is believed",
    )
    read_token: str | None = Field(
        default=None, min_length=16, description="token without which nothing can be read"
    )
    dumps_dir: Path | None = Field(
        default=None, description="folder of the daily dumps that are served under /dumps"
    )
    site_name: str = Field(default="Trainmark", max_length=60, description="name shown on pages")

    @property
    def keys_folder(self) -> Path:
        """Where the server's own keys are."""
        url = make_url(self.database_url)
        if self.keys_dir is not None:
            return self.keys_dir
        if url.get_backend_name() == "sqlite" and url.database:
            return Path(url.database).resolve().parent / "server-keys"
        return Path(platformdirs.user_data_dir("trainmark")) / "server-keys"
