"""The confirmed owners: those that the operator vouches for."""

from sqlalchemy import Connection, select

from ..db.tables import Owner, table_of

_OWNERS = table_of(Owner)
CONFIRMED = select(_OWNERS.c.label).where(_OWNERS.c.confirmed)


def confirmed_owners(connection: Connection) -> frozenset[str]:
    """Labels of the confirmed owners."""
    return frozenset(connection.scalars(CONFIRMED))
