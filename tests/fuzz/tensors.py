"""Hostile tensors, boxes fitted to public examples, and private texts of a small language model."""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import discreet as dc
from discreet import torch as private
from discreet.ledger import Budget
from discreet.torch import transformers as texts
from tests.fuzz.chooser import WORDS, Chooser
from tests.torch.transformers import models

ODD_ENTRIES = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0]
MODEL_FILES = [
    "", "{}", "[]", '{"model_type": "gpt2"}', '{"model_type": "none"}', '{"model_type": ["gpt2"]}', "8 bytes!{}", "3", "\x00",
    '{"model_type": "gpt2", "vocab_size": -1}', '{"model_type": "gpt2", "n_embd": "x"}',
    '{"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 5}',
]  # fmt: skip
KINDS = [
    torch.float64,
    torch.float64,
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.bool,
    torch.complex64,
]


def _tensor(c: Chooser, size: int) -> Any:
    """Rows of numbers, mostly finite."""
    rows = c.among([1, 1, 2, 5, 0])
    values = torch.tensor(
        [[(c.below(256) - 128) / 16.0 for _ in range(size)] for _ in range(rows)], dtype=torch.float64
    ).reshape(rows, size)
    what = c.below(8)
    if what == 0:
        return c.among(
            [
                None,
                3,
                "x",
                [0.1, 0.2, 0.3],
                np.zeros(size),
                torch.tensor(1.0),
                torch.zeros(0),
                torch.zeros(size, size, size)[:, :0],
            ]
        )
    if what == 1 and rows:
        values[0, c.below(size)] = c.among(ODD_ENTRIES)
    if what == 2:
        values = values.to(c.among(KINDS))
    if what == 3 and values.is_floating_point():
        values.requires_grad_()
    return values[0] if rows and c.below(2) else values


def tensors(c: Chooser) -> Any:
    """Outcomes, integer weights and output distributions of logits or probabilities."""
    size = c.among([1, 2, 3, 8])
    epsilon, upper = (
        c.among([1.0, 1.0, 4.0, c.number()]),
        c.among([None, 2.0, 3.0, c.number()]) if c.below(4) == 0 else None,
    )
    what = c.below(8)
    if what >= 6:
        fit: Any = private.fitted_box if what == 6 else private.fitted_upper
        return fit(
            epsilon=epsilon, logits=_tensor(c, size), reference=_tensor(c, size), measure=c.among(["kl", "tv", *WORDS]),
            temperature=c.among([1.0, 1.0, c.number()]),
        )  # fmt: skip
    given: dict[str, Any] = {"logits": _tensor(c, size)}
    if c.below(4) == 0:
        logits = _tensor(c, size)
        known = isinstance(logits, torch.Tensor) and logits.is_floating_point() and logits.ndim and c.below(2)
        given = {"probabilities": torch.softmax(logits, -1) if known else logits}
    if c.below(2):
        given["reference"] = _tensor(c, size)
    if c.below(16) == 0:
        given = c.among([{}, {"logits": torch.zeros(3), "probabilities": torch.full((3,), 1 / 3)}])
    terms: dict[str, Any] = {
        "epsilon": epsilon,
        "privacy": None,
        "upper": upper,
        "temperature": c.among([1.0, 1.0, 0.5, c.number()]),
    }
    if c.below(8) == 0:
        terms |= {"epsilon": c.among([None, 1.0]), "privacy": c.among([dc.Pure(1.0), dc.Gaussian(1.0), None, 3])}
    if what < 2:
        drawn = private.release(**given, **terms)
        assert drawn.dtype == torch.int64
        return drawn.numpy().astype(np.float64)
    if what < 4:
        weights = private.weights(**given, **terms)
        assert (weights.sum(dim=-1) == 1 << 62).all()
        assert (weights >= 0).all()
        return weights.numpy().astype(np.float64)
    found = private.output(**given, **terms)
    if found.numel():
        assert (found.detach().double().sum(dim=-1) - 1.0).abs().max() <= 1e-2
    return found.detach().double().numpy()


def private_texts(c: Chooser) -> Any:
    """Terms of a text, streams of them, and a small model that writes one."""
    sizes = [1, 2, 200, c.number()]
    terms: dict[str, Any] = {"epsilon": c.among([1.0, 4.0, c.number()]), "tokens": c.among([1, 2, c.number()])}
    options: dict[str, Any] = {
        "schedule": [(), (), (1.0,), (0.5, 0.5), "x", 3, (c.number(),)], "upper": [None, 2.0, c.number()], "delta": [1e-6, 0.0, c.number()],
        "temperature": [1.0, 0.5, c.number()], "reference_temperature": [1.0, 1.5, c.number()], "top_k": [None, 5, c.number()],
        "top_p": [None, 0.9, c.number()], "purpose": ["", "text", 3, "\ud800"],
    }  # fmt: skip
    for _ in range(c.below(3)):
        name = c.among(sorted(options))
        terms[name] = c.among(options[name])
    what = c.below(6)
    if what == 0:
        made = texts.TokenTerms(
            **terms, vocabulary=c.among(sizes), model=c.among(["", "m", 3]), public=c.among(["", "p", None])
        )
        return repr(made)
    if what == 1:
        budget = c.among([Budget(epsilon=3.0), Budget(epsilon=1e-3), None, 3.0])
        stream = texts.TokenStream(
            budget=budget, vocabulary=c.among(sizes), ledger=c.among([None, None, 3, "x"]), purpose=c.among(["", 3])
        )
        return repr(stream)
    model, tokenizer = models.model(), models.tokenizer()
    if what == 2:
        made = texts.TokenTerms(epsilon=1.0, tokens=2, vocabulary=c.among([200, 200, 10]))
        known: Any = c.among([2, 0, 1, c.number()])
        prompt: Any = c.among([[[1, 2]], [[]], [], [[999]], [["a"]], None, 3, torch.tensor([[1, 2]])])
        logits = texts.PrivateLogits(
            made, model if c.below(8) else None, prompt, known=known, ends=c.among([(), (1,), (999,), 3, "x"])
        )
        return repr(logits)
    public, examples = (
        c.among(["be", "better", "", None, 3, "\ud800"]),
        c.among([["is better"], [], "x", [3], None, [""]]),
    )
    if what == 3:
        measure = c.among(["kl", "tv", *WORDS])
        return texts.box_for(
            model,
            tokenizer,
            public=public,
            examples=examples,
            epsilon=c.among([1.0, c.number()]),
            tokens=c.among([1, 2, c.number()]),
            measure=measure,
        )
    if what == 4:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / c.among([".", ".", ".", "nowhere", "\x00"])
            for file in (
                "config.json",
                "tokenizer.json",
                "tokenizer_config.json",
                "model.safetensors",
                "generation_config.json",
            ):
                if c.below(2):
                    (Path(folder) / file).write_text(c.among(MODEL_FILES))
            return repr(
                texts.load_model(
                    path if c.below(8) else c.among([3, None, b"x"]), device=c.among(["cpu", "x", 3]), quiet=True
                )
            )
    pieces = [model, tokenizer] if c.below(8) else [c.among([model, None, 3]), c.among([tokenizer, None, "x"])]
    private_text = c.among(["is better", "", "than", None, 3])
    written = texts.generate(*pieces, public=public, private=private_text, **terms)
    assert isinstance(written, texts.PrivateText)
    assert isinstance(written.text, str)
    return repr(written.statement)
