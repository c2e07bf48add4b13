"""HEAD answers like GET, without a body."""

from typing import Any

from tests.fakes.client import Poster

# Values that stand for a path's parameters; an address that does not exist answers 404 to both.
PARAMETERS = {"name": "mnist-cnn", "slug": "intel-core-i7-8700", "level": "0", "number": "000"}
CHANGES = {"date", "content-length"}


def addresses(app: Any, result_id: str) -> list[str]:
    paths = {*app.state.paths, "/openapi.json"}
    assert len(paths) > 50
    paths |= {"/static/site.css", "/static/nothing.css", "/nothing"}
    filled = []
    for path in sorted(paths):
        for name, value in PARAMETERS.items():
            path = path.replace(f"{{{name}}}", value)
        while "{" in path:
            head, _, rest = path.partition("{")
            path = head + result_id + rest.partition("}")[2]
        filled.append(path)
    return filled


def test_head_answers_like_get_everywhere(post: Poster) -> None:
    result_id = post.made()
    for address in addresses(post.http.app, result_id):
        if address == "/metrics":  # counts its own requests
            continue
        got, head = post.http.get(address), post.http.head(address)
        assert head.status_code == got.status_code, address
        assert head.content == b"", address
        for name in {*got.headers} - CHANGES:
            assert head.headers[name] == got.headers[name], (address, name)
        length = got.headers.get("content-length")
        assert head.headers.get("content-length") == length, address
