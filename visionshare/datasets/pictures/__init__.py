"""One's own labeled pictures: found, surveyed, checked, split, prepared and read."""
