"""The command line: one module a group, click only. Everything it does is a call of the library."""
