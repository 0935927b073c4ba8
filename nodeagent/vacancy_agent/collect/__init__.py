"""Loops and probes that write observations; they judge nothing."""
