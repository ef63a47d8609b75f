"""The command line: click only. A command parses, calls, reports and returns its status."""
