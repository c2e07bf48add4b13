"""Questions across set-ups: framework against framework, CPU against GPU, batch sizes, versions.

Each reads the aggregates of one hardware and compares only figures with the same workload, batch
size, precision and data, except for the compared axis.
"""
