"""What stands behind `hack/test`: stages that all run, and a summary that hides nothing."""
