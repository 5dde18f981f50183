"""How answers read for people, by noun. A command loads the one it shows."""
