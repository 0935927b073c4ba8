"""The contract between the parts: resource models, agent configuration, status, reason codes."""
