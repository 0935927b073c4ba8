"""The runner that executes what the pure reclaim machine decides."""
