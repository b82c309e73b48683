"""The Ironic back end: async client, node cache fed by push, one module per verb."""
