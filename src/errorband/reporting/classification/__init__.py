"""Reports on models that predict classes."""
