"""Keys, envelopes, and the log's formats."""
