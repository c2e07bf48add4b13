"""HTTP: routes, pages, templates, middleware."""
