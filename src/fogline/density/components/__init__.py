"""Components and clusters, read from a released density."""
