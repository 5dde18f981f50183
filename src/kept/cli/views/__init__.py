"""Output for people, one module a noun. A command imports the one it needs."""
