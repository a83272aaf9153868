"""Pictures. They read numbers that something else computed, and need matplotlib (`pip install '.[cli]'`)."""
