"""The agent as member of a cluster: configuration in, status and heartbeat out. Imported only when joined."""
