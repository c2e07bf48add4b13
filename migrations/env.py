"""Alembic's environment. ``bench-server migrate`` passes an open connection and the models'
metadata in ``config.attributes``; migrations import no application code."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
