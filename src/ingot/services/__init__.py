"""What runs beside the operator: typed settings, pure renderers of configuration, and the process itself."""
