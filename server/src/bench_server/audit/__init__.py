"""Audits of a log from outside: verify a server's log, archive it."""
