"""Speed and memory against the budgets, as ratios that are measured side by side in one run."""
