"""Campaigns: the same winds flown with every variant, many flights, one verdict."""
