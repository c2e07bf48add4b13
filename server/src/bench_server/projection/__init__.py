"""Projection: apply the log's entries, in their order, to the tables that are shown."""
