"""The command `bench-server`."""
