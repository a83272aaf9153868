"""Small models and a tokenizer of their own, made here: initialised at random, saved and loaded as real ones are."""

import contextlib
import io
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers  # its classes take seconds to load, when they are first used
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

with contextlib.redirect_stdout(io.StringIO()):
    import this

ZEN = "".join(this.d.get(character, character) for character in this.s)  # the Zen of Python
SIZE = 200  # of the vocabulary that models have; the tokenizer's is smaller, as with many real ones


@cache
def tokenizer() -> Any:
    found = Tokenizer(models.BPE(unk_token="<unk>"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=SIZE - 8, special_tokens=["<unk>", "<end>"], show_progress=False)
    found.train_from_iterator(ZEN.splitlines(), trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=found, unk_token="<unk>", eos_token="<end>")


def config(kind: str) -> Any:
    if kind == "gpt2":
        return transformers.GPT2Config(
            vocab_size=SIZE, n_positions=128, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
        )
    return transformers.LlamaConfig(
        vocab_size=SIZE, max_position_embeddings=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, bos_token_id=1, eos_token_id=1,
    )  # fmt: skip


@cache
def model(kind: str = "gpt2") -> Any:
    """A model whose laws depend on what it has read: its random weights are made larger."""
    torch.manual_seed(1)
    found = transformers.AutoModelForCausalLM.from_config(config(kind))
    with torch.no_grad():
        for parameter in found.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12.0)
    return found.eval()


def saved(folder: Path, kind: str = "gpt2") -> Path:
    """The model and its tokenizer as a folder."""
    model(kind).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def loaded(folder: Path) -> tuple[Any, Any]:
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(
        folder
    )
