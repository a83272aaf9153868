"""Private texts of a language model: every token is drawn from the box around the public model's distribution.

A model that has read a private prompt has a distribution p of the next token. The same model after a public prompt, and the text released
so far, has a public distribution mu. Each token is drawn by `discreet.torch.release` from b mu <= q <= e^epsilon b mu. It is epsilon-LDP in
the whole private prompt, and the loss of several tokens together is given by `discreet.accounting.compose`.
"""

from discreet._base import getattr_for_old_names, imports_on_first_use
from discreet.errors import raise_missing_extra

try:
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as missing:
    raise_missing_extra("transformers", missing)

with imports_on_first_use(globals(), extra="transformers"):
    from discreet.torch.transformers._generation import PrivateText, box_for, generate
    from discreet.torch.transformers._models import load_model
    from discreet.torch.transformers._stream import PrivateLogits, TokenStream
    from discreet.torch.transformers._terms import Statement, TokenTerms

__all__ = [
    "PrivateLogits",
    "PrivateText",
    "Statement",
    "TokenStream",
    "TokenTerms",
    "box_for",
    "generate",
    "load_model",
]

__getattr__ = getattr_for_old_names(__name__, {"loaded": "load_model"})
