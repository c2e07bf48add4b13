"""The transparency log in the database: append entries, sign checkpoints, read tiles."""
