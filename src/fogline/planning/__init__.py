"""What a fit would show, before anything is spent: errors expected from public numbers alone."""
