"""From an Ironic object to the Kubernetes objects that run it.

Nothing lives here yet; the import rules already hold for it.
"""
