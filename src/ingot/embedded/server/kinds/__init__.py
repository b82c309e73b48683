"""The kinds: what each looks like, what its objects must satisfy, how they are shown and selected.

`kind` has the `Kind` and the `Registry` that finds them; `builtins` has the kinds of Kubernetes itself. Nothing here
stores an object or knows of a request.
"""
