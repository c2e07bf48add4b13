"""Exports: CSV, JSON lines, Parquet, daily dumps."""
