"""CEL: rules that a definition brings along, and conditions of webhooks.

expressions    compiling and evaluating
functions      what Kubernetes can do beyond CEL itself
"""
