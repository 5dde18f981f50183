"""The only place that builds things and joins them."""
