"""Reader processes with limits of time and memory. Import `pool.ReaderPool` from outside; the rest is its own."""
