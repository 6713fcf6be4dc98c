"""Classifiers as C99 sources."""
