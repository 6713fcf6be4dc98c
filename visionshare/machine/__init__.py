"""The machine: threads and BLAS, memory limits, progress, differences of operating systems."""
