"""``bench-agent report``: the last run as one HTML file, or as JSON."""
