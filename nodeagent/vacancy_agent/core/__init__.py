"""PURE: facts, judgement, gate, ledger, reclaim. No clock, no I/O; `now` is an argument."""
