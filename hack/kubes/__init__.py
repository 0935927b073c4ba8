"""What stands behind `hack/kube`: the parts of Kubernetes, built from their Go modules, once."""
