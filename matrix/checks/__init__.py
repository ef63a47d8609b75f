"""All that is refused before a job exists, each check a generator of faults.

A check looks at a whole search space, at one entry with its resolved recipe, or at a recipe alone. Always the resolved
variant is looked at, since that is what runs. `matrix.checks.registry` names them, `matrix.checks.run` runs them.
"""
