__version__ = "0.1.0"
__date__ = "2026-11-17"  # of this version; CITATION.cff repeats both
