"""Classifiers as TensorFlow Lite files, and what runs them here."""
