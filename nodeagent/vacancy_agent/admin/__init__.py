"""The API beside the proxies: status, switches, metrics."""
