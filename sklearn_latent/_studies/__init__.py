"""Studies around estimators: comparisons and sample sizes."""
