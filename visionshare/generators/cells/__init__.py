"""What maps and patches in cells share: responses of templates, and their maxima in cells.

Not a family. `steps` and `vectors` are what keeps sums in vector registers, `kernels` the
maxima, `gradients` the sums of gradients, `c` the same maxima in C.
"""
