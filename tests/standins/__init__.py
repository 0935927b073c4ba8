"""Parts that tests put in the place of what this machine lacks, and helpers to start real ones."""
