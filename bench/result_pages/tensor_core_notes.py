"""Sentences about rows of docs/results/tensor_cores.md that miss a bar or are slower than XLA: their bounds. Keys are labels without a colon
at their end."""

NOTES: dict[str, str] = {}
