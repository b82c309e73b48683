"""The `ingot` command. Each subcommand is one module, imported only when it is called."""
