"""Puts the parts together: one agent out of a configuration. The only place that knows them all."""
