"""The model's formulas: attention kernel, activations, perceptron, drift."""
