"""Privileges of the server's role on PostgreSQL: no more than the program needs (``roles.sql``).

The log only grows: nodes and checkpoints are never changed, and of an entry or a submission only
what a withdrawal erases and what the projector notes. ``migrate`` grants this after every step,
because new tables come with it.
"""

from sqlalchemy import Connection, inspect, text

# The role that deploy/postgresql/roles.sql makes. Without it nothing is granted.
SERVER_ROLE = "trainmark_server"
ROWS = "SELECT, INSERT, UPDATE, DELETE"
NEVER_DELETED = "SELECT, INSERT, UPDATE"
ONLY_ADDED = "SELECT, INSERT"
# Rows of every other table may be changed: such a table is projected, or a queue.
PRIVILEGES = {
    "alembic_version": "SELECT",
    "log_node": ONLY_ADDED,
    "log_checkpoint": ONLY_ADDED,
    "log_break": ONLY_ADDED,
    "withdrawn": ONLY_ADDED,
    "log_entry": ONLY_ADDED,
    "submission": f"{ONLY_ADDED}, DELETE",
    "cosignature": NEVER_DELETED,
    "signing_key": NEVER_DELETED,
    "owner": NEVER_DELETED,
    "invite": NEVER_DELETED,
    "challenge": NEVER_DELETED,
    "left_out": NEVER_DELETED,
}
# Columns of these tables that may be changed.
CHANGED = {"log_entry": ("salt", "envelope", "submission_id"), "submission": ("outlier", "ask_id")}


def grant(connection: Connection) -> None:
    """Give the server's role its privileges on every table, and take all others."""
    if connection.dialect.name != "postgresql":
        return
    exists = text("SELECT 1 FROM pg_roles WHERE rolname = :role AND rolname <> current_user")
    if connection.scalar(exists, {"role": SERVER_ROLE}) is None:
        return
    for table in inspect(connection).get_table_names():
        connection.exec_driver_sql(f'REVOKE ALL ON "{table}" FROM {SERVER_ROLE}')
        privileges = PRIVILEGES.get(table, ROWS)
        connection.exec_driver_sql(f'GRANT {privileges} ON "{table}" TO {SERVER_ROLE}')
        if columns := CHANGED.get(table):
            granted = f"GRANT UPDATE ({', '.join(columns)})"
            connection.exec_driver_sql(f'{granted} ON "{table}" TO {SERVER_ROLE}')
