"""Answers of the API and the pages: one set of frozen types for both, with units in the names."""
