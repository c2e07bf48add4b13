"""Routes of robots.txt, sitemap.xml, llms.txt and security.txt (RFC 9116)."""

from datetime import timedelta

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from bench_protocol.catalogue.catalogue import CATALOGUE

from ...answers import query_names
from .. import render
from . import pages
from .deps import Now, Reading

router = APIRouter(include_in_schema=False)
# RFC 9116 recommends less than a year. The date is computed anew for each request.
SECURITY_TXT_VALID = timedelta(days=180)


@router.get("/robots.txt")
def robots(request: Request) -> Response:
    return render.document(request, "robots.txt")


@router.get("/llms.txt")
def llms(request: Request) -> Response:
    return render.document(request, "llms.txt")


@router.get("/.well-known/security.txt")
def security(request: Request, now: Now) -> Response:
    expires = f"{now + SECURITY_TXT_VALID:%Y-%m-%dT00:00:00Z}"
    return render.document(request, "security.txt", expires=expires)


@router.get("/sitemap.xml")
def sitemap(request: Request, session: Reading) -> Response:
    """Every page with an address of its own: results and machines are reached from these."""
    paths = [route.path for route in pages.router.routes if isinstance(route, APIRoute)]
    paths = [path for path in paths if "{" not in path]
    paths += [f"/workloads/{workload.name}" for workload in CATALOGUE]
    paths += [f"/hardware/{slug}" for slug, _ in query_names.ranked_hardware(session)]
    return render.document(request, "sitemap.xml", paths=paths)
