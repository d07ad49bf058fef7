"""The paper's Figures 3 to 6, drawn anew: one module a figure."""
