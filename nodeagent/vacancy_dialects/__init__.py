"""PURE: route tables per dialect as data, matching, model names, what a body asks for."""
