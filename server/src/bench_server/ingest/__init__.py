"""Ingest: verify, refuse or store results, keys, challenges and acts."""
