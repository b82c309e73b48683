"""The parts of the measurement of images."""
