"""What outlives the agent's process: holds, tokens, the last good configuration, switches and usage."""
