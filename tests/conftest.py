"""Settings of all tests: no deadline for a single example, since these machines are noisy and kernels load when first used."""

from hypothesis import settings

settings.register_profile("discreet", deadline=None)
settings.load_profile("discreet")
