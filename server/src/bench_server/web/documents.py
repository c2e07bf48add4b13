"""The Markdown documents below ``docs``, as HTML."""

import posixpath
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from bench_protocol.base.names import slug


class Section(NamedTuple):
    """A section of a document: its anchor and heading."""

    anchor: str
    heading: str


class Document(NamedTuple):
    """A document: title, body as HTML, and sections."""

    title: str
    text: Markup
    sections: tuple[Section, ...]


@cache
def rendered(name: str) -> Document:
    """Render a Markdown document; ``name`` is one of :func:`files`. Raw HTML in it is escaped."""
    from markdown_it import MarkdownIt  # here, because a start of the server needs no documents

    text = _docs().joinpath(name).read_text("utf-8")
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for inline in tokens:
        for child in inline.children or ():
            if child.type == "link_open":
                child.attrSet("href", _address(str(child.attrGet("href")), name))
    sections = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", slug(inline.content))
            if opening.tag == "h2":
                sections.append(Section(slug(inline.content), inline.content))
        if opening.type == "table_open":
            opening.attrSet("tabindex", "0")
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"  # an empty head names no column
    title = "".join(child.content for child in tokens[1].children or ())
    body = markdown.renderer.render(tokens[3:], markdown.options, {})
    return Document(title, Markup(body), tuple(sections))  # noqa: S704 - our own text, HTML in it is escaped


def _address(href: str, name: str) -> str:
    """The address of a link in a document. A link to another document becomes that of its page."""
    target, hash, anchor = href.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if not target or file not in files():
        return href
    return f"/documents/{file.removesuffix('.md')}{hash}{anchor}"


@cache
def files() -> frozenset[str]:
    """The documents, as paths below ``docs``."""
    return frozenset(path.relative_to(_docs()).as_posix() for path in _docs().rglob("*.md"))


def _docs() -> Path:
    """``docs`` is at the root of the repository; a wheel contains it beside this package."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "docs"
    return inside if inside.is_dir() else package.parents[2] / "docs"
