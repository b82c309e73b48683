"""What the commands for CoreOS live images share: `ingot iso`, `ingot pxe`, `ingot dev`."""
