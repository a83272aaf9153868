"""Real tables, other people's protocols and a lower bound, for the benchmark of marginals."""
