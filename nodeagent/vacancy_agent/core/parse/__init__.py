"""What programs print, turned into facts or into typed errors, never into plausible defaults."""
