"""What the agent asks of the servers behind its listeners itself, on its own connections."""
