"""The command line `bench-server`."""
