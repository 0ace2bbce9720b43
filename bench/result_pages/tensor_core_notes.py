"""What bounds rows of docs/results/tensor_cores.md that miss a bar or are slower than XLA: label (without a colon at its end): a sentence."""

NOTES: dict[str, str] = {}
