"""Layouts at a scale that was not run: how fast each would be, and which ones to try
(docs/methods/layout_prediction.md)."""
