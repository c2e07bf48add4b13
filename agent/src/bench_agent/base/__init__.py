"""Shared by every stage: the home folder, keys, errors, messages."""
