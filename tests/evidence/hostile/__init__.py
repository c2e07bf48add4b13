"""The agent in hostile environments and against hostile servers."""
