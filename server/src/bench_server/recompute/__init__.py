"""Recomputation of seeded jobs: the queue, and the worker that computes, signs and logs."""
