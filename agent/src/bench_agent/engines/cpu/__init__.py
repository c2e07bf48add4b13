"""What engines share on the CPU: BLAS, memory allocation, convolution as products."""
