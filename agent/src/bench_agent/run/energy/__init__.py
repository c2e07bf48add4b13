"""Energy meters: hardware counters, always with their source."""
