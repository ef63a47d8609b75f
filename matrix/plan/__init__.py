"""What one change runs: two revisions, read from git, and the plan between them."""
