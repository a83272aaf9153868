"""Private samples of tensors: `release` draws one outcome for each row of logits or probabilities, on the tensors' device."""

from discreet._base import imports_on_first_use
from discreet.errors import raise_missing_extra

try:
    import torch  # noqa: F401
except ImportError as missing:
    raise_missing_extra("torch", missing)

with imports_on_first_use(globals(), extra="torch"):
    from discreet.torch._fitting import FittedBox, fitted_box, fitted_upper
    from discreet.torch._sampling import output, release, weights

__all__ = ["FittedBox", "fitted_box", "fitted_upper", "output", "release", "weights"]
