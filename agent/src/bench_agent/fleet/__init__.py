"""A fleet: the same run on several machines, by Dask distributed, Slurm or Kubernetes."""
