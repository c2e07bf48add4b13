"""The transparency log in the database: append, sign, read, have cosigned."""
