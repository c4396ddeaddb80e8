"""Reports on models that predict numbers."""
