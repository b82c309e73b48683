"""What runs beside the operator: typed settings, pure renderers of configuration, and the process itself.

For each service the same three steps. Settings (`settings`) are one typed value that travels through the environment; pure
renderers (`ironic_conf`, from the table in `ironic_options`) turn it into configuration text; a small module named after the
service (`ironic`) puts files in place and becomes the process. `environment` makes the virtual environment that Ironic lives
in, which is never ours.
"""
