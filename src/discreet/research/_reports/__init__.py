"""What the records say: summaries, findings in sentences, and self-contained pages."""
