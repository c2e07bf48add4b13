"""Questions across set-ups: framework against framework, CPU against GPU, batch sizes, versions.

Only figures with the same workload, batch size, precision and data are compared, except for the
compared axis.
"""
