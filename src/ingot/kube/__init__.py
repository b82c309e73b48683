"""Talking to a Kubernetes API: client, informer, queue, controller. Knows no kind of ours."""
