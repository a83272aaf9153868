"""Mollified boosted density estimation (Husain et al. 2020, Algorithm 1): the baseline of the paper's Figures 1 and 4."""

from discreet.research._boosted._presets import PRESETS, Preset, Training
from discreet.research._boosted._sampler import BoostedLaw, BoostedSampler

__all__ = ["PRESETS", "BoostedLaw", "BoostedSampler", "Preset", "Training"]
