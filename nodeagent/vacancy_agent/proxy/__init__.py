"""The gated proxy: auth, classify, decide, reserve, forward, release, on vacancy_http."""
