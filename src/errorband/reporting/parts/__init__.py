"""What reports of every kind are made of: contents, figures and sections about any fitted model."""
