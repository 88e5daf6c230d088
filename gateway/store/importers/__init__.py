"""What readers of other programs' sessions share: damaged lines, SQLite in use, and values of common shapes."""
