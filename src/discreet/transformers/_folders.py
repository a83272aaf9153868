"""A model from a folder on this machine: nothing is fetched, and no code in the folder is run."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from discreet._files import reason
from discreet.errors import DiscreetError

_CONTENT = (".safetensors", ".bin", ".json", ".model", ".txt")


class LoadedModel(NamedTuple):
    """A model, its tokenizer, and the digest of the files they came from, by which agreements name it."""

    model: Any
    tokenizer: Any
    name: str


def load_model(folder: str | Path, *, device: str | None = None, quiet: bool = False) -> LoadedModel:
    """The causal model and the tokenizer in a folder that `save_pretrained` wrote.

    Args:
        folder: where they lie.
        device: such as "cuda" or "cpu"; left out: CUDA where there is one.
        quiet: whether transformers keeps its bars and notes to itself, from now on.

    Returns:
        Model (ready to be asked), tokenizer and digest.

    Raises:
        DiscreetError: if there is no such model.
    """
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise DiscreetError(f"model = {folder} is not a folder with a config.json, as save_pretrained writes it")
    if quiet:
        logging.set_verbosity_error()
        logging.disable_progress_bar()
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        model = AutoModelForCausalLM.from_pretrained(place, local_files_only=True, dtype="auto").to(where).eval()
        tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    except (
        OSError,
        ValueError,
        RuntimeError,
        KeyError,
    ) as error:  # what transformers and torch raise for what is no model
        raise DiscreetError(f"model {folder} cannot be loaded on {where}: {reason(error)}") from error
    return LoadedModel(model, tokenizer, _digest(place))


def _digest(folder: Path) -> str:
    """SHA-256 of the names and contents of the files that make the model."""
    found = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        if name.endswith(_CONTENT):
            with open(folder / name, "rb") as file:
                found.update(f"{name}:{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return "sha256:" + found.hexdigest()
