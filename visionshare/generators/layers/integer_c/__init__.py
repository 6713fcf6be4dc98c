"""Networks of integers in C: one program for all layers."""
