"""Dependencies that ``pip install ./shared ./agent`` installs on a measuring machine."""

import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
# From the sources, because the metadata of an editable install may be older.
OURS = {
    f"bench-{name}": tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    for name, folder in (("protocol", "shared"), ("agent", "agent"), ("server", "server"))
}
FRAMEWORKS = {"tensorflow", "tensorflow-cpu", "keras", "mlx", "jax", "torch"}


def declared(name: str) -> Iterable[str]:
    """The requirements that a distribution declares."""
    return OURS[name]["dependencies"] if name in OURS else requires(name) or ()


def installed_with(name: str) -> set[str]:
    """Every distribution that comes with this one on this platform."""
    waiting, seen, names = [(name, "")], set[tuple[str, str]](), set[str]()
    while waiting:
        name, extra = waiting.pop()
        names.add(name)
        for requirement in map(Requirement, declared(name)):
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            needed = canonicalize_name(requirement.name)
            new = {(needed, extra) for extra in ("", *requirement.extras)} - seen
            seen |= new
            waiting += new
    return names


def test_a_fresh_agent_is_small() -> None:
    """No framework (they are extras), nothing of the server's, no SciPy (143 MB)."""
    names = installed_with("bench-agent")
    assert {"numpy", "pydantic-core", "httpx", "certifi"} <= names
    assert not names & {"scipy", "bench-server", "sqlalchemy", "pyarrow", "fastapi", *FRAMEWORKS}


def test_the_search_goes_through_dependencies_of_dependencies() -> None:
    assert "starlette" in installed_with("bench-server")  # of FastAPI
