"""The first hour on a CUDA machine without a network (docs/results.md): pack, run, apply."""
