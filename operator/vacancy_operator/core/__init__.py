"""Decisions of the operator: pure functions of what is in the cluster and of the time that is passed in."""
