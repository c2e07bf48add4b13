"""The tests use no keys, results or settings of the user who runs them."""

import pytest

from bench_agent.base.home import find_home
from bench_server.settings import Settings


def test_default_folders_are_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.getbasetemp()
    server = Settings(database_url="postgresql+psycopg://host/trainmark")
    assert server.keys_folder.is_relative_to(own)
    assert find_home().root.is_relative_to(own)
