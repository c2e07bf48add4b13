"""The worker process: one repeat of one cell."""
