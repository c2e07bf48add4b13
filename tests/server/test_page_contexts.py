"""Contexts of pages and their parts: few fields, none can be changed, templates use each."""

import pkgutil
import re
from dataclasses import fields, is_dataclass
from importlib import import_module

import pytest
from jinja2 import meta

from bench_server.web import pages, render
from bench_server.web.pages.common import Page

MOST_FIELDS = 15


def _contexts() -> list[type]:
    names = [each.name for each in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}.")]
    return [
        one
        for name in names
        for one in vars(import_module(name)).values()
        if isinstance(one, type) and is_dataclass(one) and one.__module__ == name
    ]


@pytest.mark.parametrize("context", _contexts(), ids=lambda context: context.__name__)
def test_a_page_context_has_few_fields_and_is_frozen(context: type) -> None:
    assert len(fields(context)) <= MOST_FIELDS
    assert context.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert context.__doc__


def test_every_page_has_a_context() -> None:
    templates = {path.name for path in (render.FOLDER / "templates").glob("[a-z]*.html")}
    assert templates - {"base.html", "study.html", "error.html"} == set(pages.PAGES)


@pytest.mark.parametrize(("template", "context"), pages.PAGES.items())
def test_templates_use_what_their_context_holds(template: str, context: type) -> None:
    env = render.environment()
    used: set[str] = set()
    name: str | None = template
    while name is not None:
        source = (render.FOLDER / "templates" / name).read_text()
        base = re.search(r'{% extends "(.*?)" %}', source)
        name = base and base[1]
        set_inside = set(re.findall(r"{% (?:set|macro) (\w+)", source))
        used |= meta.find_undeclared_variables(env.parse(source)) - set_inside
    held = {field.name for field in fields(context)}
    macros = {
        name
        for file in ("_macros.html", "_board_row.html", "_controls.html")
        for name in vars(env.get_template(file).module)
        if name[0] != "_"
    }
    assert held == used - macros - {
        *("static", "site_name", "path", "origin", "as_of", "stopped", "study_query", "STUDIES")
    }
    assert context.__doc__
    assert context is Page or context.__doc__.startswith("``/")
    assert "json_href" in held
