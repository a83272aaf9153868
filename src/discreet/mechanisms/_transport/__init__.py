"""Near samples: minimax-optimal in Wasserstein-1 distance on a finite metric space."""

from discreet.mechanisms._transport._sampler import TransportSampler

__all__ = ["TransportSampler"]
