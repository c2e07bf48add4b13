"""Alembic's environment. Frozen history: imports no application code.

``bench-server migrate`` passes an open connection in ``config.attributes["connection"]``.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("metadata"),
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
