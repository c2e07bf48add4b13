"""What is trained: workloads, layers, seeds, the matrix, vendors' peaks."""
