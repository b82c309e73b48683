"""BareMetalSwitch: what Ironic's networking service is told about switches."""
