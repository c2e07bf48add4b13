"""Answers to questions: leaderboards, comparisons, hardware, history, studies."""
