"""The operator: turns LendingHosts into what their agents need, and says how they are."""
