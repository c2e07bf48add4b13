"""The ASGI application: routes, error handlers, middleware."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from . import __version__, memory
from .db.store import Store, utc_now
from .ingest.inbox import Inbox
from .log.server_keys import Authority, load_authority
from .settings import Settings
from .web import openapi, problems
from .web.as_of import AS_OF_HEADER, AsOf
from .web.bodies_in_flight import BodiesInFlight
from .web.entity_tags import ConditionalRequests, EntityTags
from .web.every_answer import EveryAnswer
from .web.kept_answers import STALE_SECONDS, KeptAnswers
from .web.metrics import Metrics, registry
from .web.rate_limit import AccessLimits, Rate
from .web.routes import ROUTERS
from .web.static_files import DigestedFiles

GZIP_LEVEL = 6
# Parquet is compressed already; hashes of tiles are random.
INCOMPRESSIBLE = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/vnd.apache.parquet",
    "application/octet-stream",
)


def create_app(
    settings: Settings,
    store: Store | None = None,
    clock: Callable[[], datetime] = utc_now,
    authority: Authority | None = None,
    stale_seconds: float = STALE_SECONDS,
) -> FastAPI:
    """Create the application.

    Args:
        settings: the server's settings.
        store: the database; None opens the one in the settings.
        clock: returns the time of arrival of a request.
        authority: the server's own keys; None loads those in the settings' folder.
        stale_seconds: how long a board or comparison is sent after it was last current.
    """
    opened = store or Store(settings.database_url)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        opened.close()

    app = FastAPI(
        title=f"{settings.site_name} API",
        summary="Signed training benchmarks: submit, rank, compare.",
        description=openapi.DESCRIPTION,
        openapi_tags=[{"name": name, "description": words} for name, words in openapi.TAGS.items()],
        # The name of a method in a client.
        generate_unique_id_function=lambda route: route.name,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # Swagger's page loads files from another host; /docs is our own page
        redoc_url=None,
    )
    app.state.store = opened
    app.state.kept = {}
    app.state.clock = clock
    app.state.settings = settings
    app.state.authority = authority or load_authority(settings.origin, settings.keys_folder)
    app.state.inbox = Inbox(opened, app.state.authority)
    app.state.address_rate = Rate(settings.address_rate)
    app.state.key_rate = Rate(settings.key_rate)
    app.state.enroll_rate = Rate(settings.enroll_rate)
    app.state.challenge_rate = Rate(settings.challenge_rate)
    app.state.act_rate = Rate(settings.act_rate)
    app.state.metrics = registry(lambda: app.state.store)
    app.state.paths = frozenset(
        route.path for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)
    )
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", DigestedFiles(), name="static")
    problems.install(app)
    openapi.install(app)
    # The middleware added last runs first. Answers are kept outside of tags and compression, so
    # that one which is sent again is neither tagged nor compressed again.
    app.add_middleware(problems.UnsatisfiedRanges)
    app.add_middleware(EntityTags)
    app.add_middleware(
        GZipMiddleware, compresslevel=GZIP_LEVEL, exclude_content_types=INCOMPRESSIBLE
    )
    app.add_middleware(BodiesInFlight)
    app.add_middleware(AsOf)
    app.add_middleware(KeptAnswers, stale_seconds=stale_seconds)
    app.add_middleware(ConditionalRequests)
    app.add_middleware(
        AccessLimits,
        rate=app.state.address_rate,
        read_token=settings.read_token,
        read_only=settings.read_only == "yes",
    )
    # Everything that can be read is public, so a page of any origin may read it. No browser keeps a
    # preflight's answer (`max_age`): one that allows GET with a content type would also let a POST
    # through, which has no preflight of its own then.
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["GET", "HEAD"],
        allow_headers=["Authorization", "If-None-Match"],
        expose_headers=["Content-Disposition", "ETag", "Link", "Retry-After", AS_OF_HEADER],
        max_age=0,
    )
    app.add_middleware(EveryAnswer)
    app.add_middleware(Metrics, registry=app.state.metrics)
    return app


def from_environment() -> FastAPI:
    """Create the application of a worker process, with settings from the environment."""
    memory.limit_arenas()
    memory.switch_threads_often()
    app = create_app(Settings())
    memory.tune_collector()
    return app
