"""Render HTML pages with Jinja2. Everything is escaped; the protocol formats figures."""

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import caveat
from bench_protocol.payload import doubt_text, doubts
from bench_protocol.trust import shows, trust_levels

from ..ranking import held, ranges
from . import short_names, static_files
from .heads import HEADS
from .plots import flops
from .shared_marks import shared_marks

UNSTEADY = (
    f"within-run spread above {people.percent(doubts.UNSTEADY_SPREAD, 0)}: something else was "
    "running, or the machine was throttling"
)
# The scope of an energy meter in words; other scopes are spelt out.
SCOPES = {"gpu": "GPU alone", "cpu_package": "processor package", "soc": "whole chip"}
SUMMARIES = {workload.name: workload.summary for workload in CATALOGUE}
# Pages that show one hardware, and keep the one that the page before showed.
STUDIES = ("/frameworks", "/cpu-vs-gpu", "/batch-size", "/trends")
FOLDER = Path(__file__).resolve().parent


def _whole(text: str) -> Markup:
    """Keep each word with a hyphen on one line."""
    words = text.split(" ")
    whole = Markup('<span class="whole">{}</span>')
    return Markup(" ").join(whole.format(word) if "-" in word else word for word in words)


def scope_words(scope: str) -> str:
    return SCOPES.get(scope, scope.replace("_", " "))


@cache
def xml_templates() -> Environment:
    """Templates of XML documents: pictures and feeds."""
    env = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined
    )
    env.filters.update(
        short=short_names.text,
        # Remove bidirectional controls and characters that XML forbids.
        plain=lambda text: "".join(filter(str.isprintable, str(text))),
    )
    return env


@cache
def environment() -> Environment:
    """The template environment with the pages' filters."""
    env = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        doubt=doubt_text.words,
        duration=people.seconds,
        nanoseconds=people.nanoseconds,
        rate=speeds.number,
        rate_range=speeds.interval,
        speed=speeds.words,
        short_speed=speeds.short,
        unit=speeds.unit,
        ratio=people.ratio,
        ratio_range=lambda low, high: people.interval(low, high, people.times, "×"),
        faster=people.faster,
        bounds=people.bounds,
        ordinal=people.ordinal,
        percent=people.percent,
        size=people.size,
        joules=people.joules,
        money=people.money,
        scope=scope_words,
        contains=ranges.WORDS.get,
        flops=flops,
        plain=lambda name: SUMMARIES.get(name, ""),
        day=lambda value: f"{value:%Y-%m-%d}",
        count=lambda value: f"{value:,}",
        plural=people.plural,
        moment=lambda value: f"{value:%Y-%m-%d %H:%M} UTC",
        whole=_whole,
        sentence=lambda text: text[:1].upper() + text[1:],
    )
    env.globals["static"] = static_files.address
    env.globals["STUDIES"] = STUDIES
    env.globals["HEADS"] = HEADS
    env.globals["UNSTEADY"] = UNSTEADY
    env.globals["caveat"], env.globals["shared_marks"] = caveat, shared_marks
    env.globals["MACHINES_DIFFER"], env.globals["BOOST"] = ranges.MACHINES_DIFFER, ranges.BOOST
    env.globals["HELD"] = held.WORDS
    env.globals["LEVELS"] = trust_levels.LEVELS
    env.globals["ASSURANCE_WORDS"] = trust_levels.ASSURANCE_WORDS
    env.globals["STATUS_WORDS"] = shows.STATUS_WORDS
    env.globals["level_words"] = trust_levels.words
    return env


def page(request: Request, template: str, context: Any, status: int = 200) -> HTMLResponse:
    """Render a page from its context, a dataclass of :mod:`.pages`."""
    variables = {field.name: getattr(context, field.name) for field in fields(context)}
    return _html(request, template, status, variables, _study_query(context))


def _html(
    request: Request, template: str, status: int, variables: dict[str, Any], study_query: str = ""
) -> HTMLResponse:
    """A page in its frame. An error may come before the database was asked."""
    html = (
        environment()
        .get_template(template)
        .render(
            study_query=study_query,
            origin=str(request.base_url).rstrip("/"),
            site_name=request.app.state.settings.site_name,
            path=request.url.path,
            as_of=getattr(request.state, "as_of", None),
            stopped=getattr(request.state, "stopped", False),
            **variables,
        )
    )
    return HTMLResponse(html, status)


def _study_query(context: Any) -> str:
    slug = getattr(context, "hardware_in_view", None)
    return f"?{urlencode({'hardware': slug})}" if slug else ""


def document(request: Request, template: str, **values: Any) -> Response:
    """Render a document for programs, in plain text or XML; only XML is escaped."""
    is_xml = template.endswith(".xml")
    found = environment().overlay(autoescape=is_xml).get_template(template)
    origin = str(request.base_url).rstrip("/")
    name = request.app.state.settings.site_name
    text = found.render(site_name=name, origin=origin, **values)
    return Response(text, media_type="application/xml" if is_xml else "text/plain")


def error_page(
    request: Request, status: int, title: str, detail: str, hint: str, near: Sequence[str]
) -> HTMLResponse:
    """Render a refusal as a page. ``near``: addresses that may be the wanted one."""
    words = {"title": title, "status": status, "detail": detail, "hint": hint, "near": near}
    return _html(request, "error.html", status, {**words, "json_href": None})
