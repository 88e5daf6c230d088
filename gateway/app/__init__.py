"""The composition root: settings become a running gateway."""
