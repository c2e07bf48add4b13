"""The server as the agent sees it: outbox, client, log checks."""
