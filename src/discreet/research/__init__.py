"""The paper's experiments and ours, the baselines they compare with, and the reports on them. Nothing in the library needs it.

`boosted`: the learnt baseline. `published`: figures of others, cited. `experiments` compute and write records; `figures` and
`reports` read them. `discreet reproduce` and `discreet demo` run it.
"""

from discreet.research._boosted import BoostedLaw, BoostedSampler, Training

__all__ = ["BoostedLaw", "BoostedSampler", "Training"]
