"""Tests of discreet. Linear algebra has one thread: several wait for each other where tests run side by side, and many are small."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported; processes that tests start take it along
