"""Settings, read once at the start from ``BENCH_SERVER_*``."""

from pathlib import Path

import platformdirs
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def default_database_url() -> str:
    """SQLite in the user's data folder."""
    return f"sqlite:///{Path(platformdirs.user_data_dir('trainmark')) / 'server.db'}"


class Settings(BaseSettings):
    """Every setting of the server; each is the environment variable of its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="BENCH_SERVER_", extra="ignore")

    database_url: str = Field(
        default_factory=default_database_url,
        description="SQLAlchemy address: sqlite:///PATH, or postgresql+psycopg://USER@HOST/NAME",
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port; 0 takes a free one")
    site_name: str = Field(default="Trainmark", max_length=60, description="name shown on pages")
