"""HEAD answers like GET, without a body."""

import re
from typing import Any

import pytest
from tests.fakes.client import Poster

# Values that stand for a path's parameters; an address that does not exist answers 404 to both.
PARAMETERS = {"name": "mnist-cnn", "slug": "intel-core-i7-8700", "level": "0", "number": "000"}
CHANGES = {"date", "content-length"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_head_answers_like_get_everywhere(post: Poster) -> None:
    values = PARAMETERS | {"id": post.made()}
    app: Any = post.http.app  # type: ignore[attr-defined]
    paths = {*app.state.paths, "/openapi.json"}
    assert len(paths) > 50
    paths |= {"/static/site.css", "/static/nothing.css", "/nothing"}
    for path in sorted(paths - {"/metrics"}):  # which counts its own requests
        address = re.sub(r"{(\w+)[^}]*}", lambda name: values.get(name[1], values["id"]), path)
        got, head = post.http.get(address), post.http.head(address)
        assert (head.status_code, head.content) == (got.status_code, b""), address
        for name in {*got.headers} - CHANGES:
            assert head.headers[name] == got.headers[name], (address, name)
        assert head.headers.get("content-length") == got.headers.get("content-length"), address
