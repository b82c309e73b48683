"""The back end itself against the real Ironic: no API, no operator, each answer of a call as it comes.

One Ironic, one farm and one back end for the whole folder: starting them costs more than any test. Each test has its own server.
"""
