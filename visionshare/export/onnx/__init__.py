"""Classifiers as ONNX models."""
