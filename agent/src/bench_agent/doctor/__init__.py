"""Doctor: check what runs on this machine and what does not, and name the command that fixes it."""
