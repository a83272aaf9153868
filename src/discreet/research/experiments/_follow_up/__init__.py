"""The experiments of the follow-up paper (Ghoukasian, Lee and Asoodeh, NeurIPS 2025), and ours beside them."""
