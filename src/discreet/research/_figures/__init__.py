"""Pictures of the experiments, drawn from their records; the pictures that users want are in `discreet.plots`."""
