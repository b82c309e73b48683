"""The Secrets of a host: read for a pass and kept nowhere, marked while they are needed."""
