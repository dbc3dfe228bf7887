"""Ratios and counts against peers, one file a question: `python -m bench [question ...]`. No test: nothing fails on a slow machine."""
