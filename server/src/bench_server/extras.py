"""The extras of this package, which its optional parts need."""


def install(extra: str) -> str:
    """How to install one. It names the checkout: the package is on no index yet."""
    return f"in a checkout: pip install ./shared './server[{extra}]'"
