"""The single machine: a Kubernetes API on one SQLite file, and the supervisor that keeps the parts running."""
