"""Trust levels, what a result shows, and which set-ups are asked for."""
