"""How fast the server is, beside its peers: ``make benchmark-server``, ``make benchmark-sizes``."""
