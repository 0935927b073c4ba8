"""Benchmarks behind `hack/bench`: ratios measured in one interleaved run against a peer started beside it."""
