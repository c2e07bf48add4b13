"""Audits of a log from outside: verify a server's log, save what was verified."""
