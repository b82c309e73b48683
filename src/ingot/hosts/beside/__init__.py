"""What stands beside a host and carries its name: hardware, firmware, ramdisk, data image."""
