"""Linux: presence from systemd-logind, processes from /proc, devices from sysfs."""
