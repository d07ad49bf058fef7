"""The paper's experiments, and whatever else is to be compared: protocols, runs, reports."""
