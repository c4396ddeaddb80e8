"""One HTML file from sections of text, tables and plots. Nothing here knows about models."""
