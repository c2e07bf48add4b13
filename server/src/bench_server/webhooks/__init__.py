"""Webhooks: signed messages about new results, changes and ranks to registered addresses."""
