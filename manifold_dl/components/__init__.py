"""What all swappable parts have in common: names, settings as JSON, and errors that name the part."""
