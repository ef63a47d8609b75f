"""Questions about plans: what changed, what it costs. Pure functions; only `matrix.answers.side` reads anything."""
