"""Everything that is refused before anything is merged, each check a generator of findings."""
