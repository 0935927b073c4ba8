"""What stands behind `hack/ollama`: a real Ollama for processors, built from its Go module, once."""
