"""From configs to points: one point is one job."""
