"""CEL: rules that a definition brings along, and conditions of webhooks.

expressions    compiling and evaluating
syntax         the parsed form, read against a schema
costs          what evaluating may cost
values         from an object to what an expression sees of it
rules          the rules of a schema, put to objects
definitions    what is wrong with the rules of a definition
conditions     conditions of webhooks
functions      what Kubernetes can do beyond CEL itself
"""
