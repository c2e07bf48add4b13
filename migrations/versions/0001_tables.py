"""All tables, as the server's models describe them.

Before the first release, change the schema in ``server/src/bench_server/db/tables/`` alone: this
migration follows, and an existing database is made again. The first release writes the tables out
here; from then on each change is a migration of its own.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

METHODS = "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'"


def upgrade() -> None:
    context.config.attributes["metadata"].create_all(op.get_bind(), checkfirst=False)
    _compress_payloads(op.get_bind())


def _compress_payloads(connection: sa.Connection) -> None:
    """Compress payloads with LZ4 if this PostgreSQL was built with it: half the time of a row
    that pglz takes, and a tenth more space."""
    if connection.dialect.name != "postgresql":
        return
    if "lz4" in (connection.scalar(sa.text(METHODS)) or ()):
        op.execute("ALTER TABLE submission ALTER COLUMN payload SET COMPRESSION lz4")
