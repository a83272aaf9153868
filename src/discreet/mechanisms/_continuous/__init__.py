"""Output laws of densities: nodes on which p and h are known, and the finite problem on them, for one client or for many."""
