"""What is received: verify, refuse or store; the checks of results; keys, challenges, acts."""
