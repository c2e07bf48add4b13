"""``bench-agent report``: the last run as a document worth sending to someone.

``figures`` derives, ``charts`` chooses what to show, and one module a format writes it.
"""
