"""Plans: which cells run, how long they take, whether they fit in memory."""
