"""Where the signals live and who computes: blocks of signals, sums over a fixed tree, threads."""
