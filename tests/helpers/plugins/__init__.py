"""One small plug-in per kind of thing; importing a module is all it takes to add it."""
