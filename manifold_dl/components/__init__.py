"""What all components have in common: names (`registry.py`), settings as JSON, and errors that name them."""
