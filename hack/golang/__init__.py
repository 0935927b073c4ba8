"""Programs built from Go modules, once, outside the tree: what `hack/kube` and `hack/ollama` share."""
