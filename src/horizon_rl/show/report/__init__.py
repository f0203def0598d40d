"""Runs as a page: a report to keep and share, or live while they train."""
