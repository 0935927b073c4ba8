"""The node agent: observes, decides, admits, forwards, gives back."""
