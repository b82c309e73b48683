"""The face: from an HTTP request to its answer, and everything a client may ask about the API itself.

`app` is where a request arrives; `requests` reads it, `rendering` writes the answer, `auth` says who asks. Discovery,
OpenAPI and reviews describe the API and the caller. What is stored is none of its business.
"""
