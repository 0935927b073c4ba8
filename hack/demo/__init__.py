"""What `hack/try` runs."""
