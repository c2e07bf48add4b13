"""``bench-agent report``: the last run as a document to share.

``figures`` derives, ``charts`` chooses the comparisons, and one module per format writes.
"""
