"""A Kubernetes API server on one SQLite file."""
