"""Language models: loading from a local folder, checks, and the logits of the next token.

Loading downloads nothing and runs no code from the folder. A `Context` keeps a key-value cache and takes one forward pass for each token.

Public and private prompts are never in one batch. The padding of a batch and the order of its sums would depend on the private prompts. So
would the last bits of the public distribution, which defines the box. For the same reason the private prompts of several clients are read
one by one (`SeparateContexts`) unless the caller chooses otherwise.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from discreet._base.files import error_reason
from discreet.errors import DiscreetError, check_flag, check_kind, check_path


class Context:
    """Texts of one kind, public or private, that the model has read and to which tokens are appended.

    Args:
        model: a causal model of transformers, or a callable like one.
        rows: the tokens of each prompt.
        padding: the token that fills shorter rows; it is masked.
    """

    def __init__(self, model: Any, rows: Sequence[Sequence[int]], padding: int) -> None:
        self._model = model
        longest = max(map(len, rows))
        token_rows = [[padding] * (longest - len(row)) + list(row) for row in rows]
        mask_rows = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
        device = next(model.parameters()).device
        self._next = torch.tensor(token_rows, device=device)
        self._mask = torch.tensor(mask_rows, device=device)
        self._cache: Any = None
        parameters = inspect.signature(model.forward).parameters
        self._positions = "position_ids" in parameters
        self._last = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}

    def next_token_logits(self) -> torch.Tensor:
        """The logits (rows, vocabulary) of the next token, on the model's device."""
        options: dict[str, Any] = dict(self._last)
        if self._positions:
            options["position_ids"] = (self._mask.cumsum(-1) - 1).clamp_min(0)[:, -self._next.shape[1] :]
        with torch.inference_mode():
            output = self._model(
                input_ids=self._next, attention_mask=self._mask, past_key_values=self._cache, use_cache=True, **options
            )
        self._cache = output.past_key_values
        return output.logits[:, -1, :]

    def append_tokens(self, tokens: torch.Tensor) -> None:
        """Add one token to each row."""
        self._next = tokens.to(self._mask.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(self._next)], dim=1)


class SeparateContexts:
    """Rows that are read one by one: the logits of a row are independent of other rows and their lengths. Arguments as in `Context`."""

    def __init__(self, model: Any, rows: Sequence[Sequence[int]], padding: int) -> None:
        self._each = [Context(model, [row], padding) for row in rows]

    def next_token_logits(self) -> torch.Tensor:
        """The logits (rows, vocabulary) of the next token, on the model's device."""
        return torch.cat([context.next_token_logits() for context in self._each])

    def append_tokens(self, tokens: torch.Tensor) -> None:
        """Add one token to each row."""
        for row, context in enumerate(self._each):
            context.append_tokens(tokens[row : row + 1])


def vocabulary_size_of_checked_model(name: str, model: Any, vocabulary: int | None) -> int:
    """The number of tokens a model knows; an error for a model in training mode or with another vocabulary."""
    config = getattr(model, "config", None)
    size = getattr(config, "vocab_size", None)
    if not callable(model) or not isinstance(size, int):
        raise DiscreetError(f"{name} = {type(model).__name__} is no causal language model with a config.vocab_size")
    if getattr(model, "training", False):
        raise DiscreetError(
            f"{name} is in training mode, whose dropout makes its distributions random; call {name}.eval()"
        )
    if vocabulary is not None and size != vocabulary:
        raise DiscreetError(f"{name} knows {size:,} tokens and model {vocabulary:,}; both need one vocabulary")
    return size


def vocabulary_size_of_checked_tokenizer(tokenizer: Any) -> int:
    """How many tokens a tokenizer knows; what does not turn texts into tokens and back is refused."""
    if isinstance(tokenizer, type) or not (
        callable(tokenizer) and hasattr(tokenizer, "decode") and hasattr(tokenizer, "__len__")
    ):
        raise DiscreetError(
            f"tokenizer = {type(tokenizer).__name__} is no tokenizer of transformers; pass the model's own"
        )
    return len(tokenizer)


def refuse_prompts_without_room(model: Any, rows: Sequence[Sequence[int]], tokens: int, what: str) -> None:
    """Raise an error, before anything is drawn, for prompts that leave the model no room for the tokens."""
    limit = getattr(model.config, "max_position_embeddings", None)
    longest = max(map(len, rows))
    if isinstance(limit, int) and longest + tokens > limit:
        raise DiscreetError(
            f"{what} has {longest:,} tokens, and with {tokens:,} more that is past the {limit:,} that the model reads; take fewer tokens "
            "or a shorter prompt"
        )


def end_of_text_tokens(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end a text."""
    settings = getattr(model, "generation_config", None)
    tokens = getattr(settings, "eos_token_id", None)
    if tokens is None:
        tokens = tokenizer.eos_token_id
    return set() if tokens is None else set(tokens) if isinstance(tokens, (list, tuple)) else {int(tokens)}


def prompt_as_bytes(what: str, text: str) -> bytes:
    """A prompt in UTF-8; an error for what is no text. The text is not shown: it may be private."""
    if not isinstance(text, str):
        raise DiscreetError(f"{what} = {type(text).__name__} is not a text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DiscreetError(f"{what} is not valid Unicode; pass a text that UTF-8 can spell") from None


def tokenise_prompt(tokenizer: Any, what: str, text: str) -> list[int]:
    """A prompt as tokens; an error for an empty one."""
    prompt_as_bytes(what, text)
    tokens = [int(token) for token in tokenizer(text)["input_ids"]]
    if not tokens and tokenizer.bos_token_id is not None:
        tokens = [int(tokenizer.bos_token_id)]
    if not tokens:
        raise DiscreetError(f"{what} holds an empty prompt, and the tokenizer has no token to begin with; pass a text")
    return tokens


_CONTENT = (".safetensors", ".bin", ".json", ".model", ".txt")


class LoadedModel(NamedTuple):
    """A model, its tokenizer, and the digest of their files, by which agreements name it."""

    model: Any
    tokenizer: Any
    name: str


def load_model(folder: str | Path, *, device: str | None = None, quiet: bool = False) -> LoadedModel:
    """The causal model and the tokenizer in a folder that `save_pretrained` wrote.

    Args:
        folder: of both.
        device: such as "cuda" or "cpu"; by default CUDA if available.
        quiet: whether to silence transformers' progress bars and notes from now on.

    Returns:
        Model (in evaluation mode), tokenizer and digest.

    Raises:
        DiscreetError: if there is no such model.
    """
    path = check_path("folder", folder)
    if device is not None and not isinstance(device, str):
        check_kind("device", device, torch.device, "pass a name such as 'cpu' or 'cuda'")
    quiet = check_flag("quiet", quiet)
    if not (path / "config.json").is_file():
        raise DiscreetError(f"model = {folder} is not a folder with a config.json, as save_pretrained writes it")
    if quiet:
        logging.set_verbosity_error()
        logging.disable_progress_bar()
    device_name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if str(device_name).partition(":")[0] == "meta":
        raise DiscreetError("device = meta holds no numbers, and a text needs some; take cpu or cuda")
    try:
        model = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, dtype="auto").to(device_name).eval()
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (
        OSError,
        ValueError,
        RuntimeError,
        KeyError,
        TypeError,
        AttributeError,
        AssertionError,  # a device that torch was not compiled for
        SafetensorError,
        StrictDataclassError,
    ) as error:  # raised by transformers and torch for an invalid model
        raise DiscreetError(f"model {folder} cannot be loaded on {device_name}: {error_reason(error)}") from error
    return LoadedModel(model, tokenizer, _digest_of_model_folder(path))


def _digest_of_model_folder(folder: Path) -> str:
    """SHA-256 of the names and contents of the files that make the model."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if name.endswith(_CONTENT):
            with open(folder / name, "rb") as file:
                digest.update(f"{name}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return "sha256:" + digest.hexdigest()
