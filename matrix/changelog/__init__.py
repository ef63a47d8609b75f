"""The log of what was swept and why: bytes in; entries, findings and bytes out.

``text`` cuts the bytes into blocks, ``entries`` reads them, ``compare`` puts two revisions side by side, ``rules`` is
the one verdict of hook, pull request and merge, ``repair`` and ``merge`` write what the rules accept. Nothing here
knows git, files or master configs.
"""
