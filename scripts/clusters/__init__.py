"""Clusters that scripts start and stop."""
