"""What other libraries for private text claim, held against what they do: `python -m benchmarks.field`, where they are installed.

In an environment of its own, with what `INSTALL` says; where that is not there, it is what the command prints.

No weights are downloaded: invink runs on a small model with random weights, made here. Nothing of theirs is changed but that the model is
loaded once, not anew for each text, and that the clipping norm of given parameters is computed once.

invink promises (epsilon, delta) for leaving one private text out; to replace one by another is to do so twice, so the audit from outside
holds it against twice its epsilon.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import math
import secrets
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

TOKENS = 4
EPSILON, DELTA = 1.0, 1e-5
FIXED_DRAWS, FRESH_DRAWS = 200, 1000  # of each of two inputs
INSTALL = """In an environment of its own, Python 3.12 or later (which invink's syntax needs):
    pip install torch transformers accelerate pandas scipy tqdm requests
    pip install --no-deps dp-fusion-lib==0.1.0 invink==0.1.0"""
NEEDED = ("torch", "transformers", "dp_fusion_lib", "invink")


def main() -> None:
    """Both, one after the other; whoever lacks what they need is told what to install."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}. {INSTALL}")
    dp_fusion()
    invisible_ink()


def dp_fusion() -> None:
    """`find_lambda` promises D_2 <= beta between what is drawn from and the public law; D_2 of the same pair in rational numbers."""
    import torch

    library: Any = importlib.import_module("dp_fusion_lib")
    print(f"dp-fusion-lib {importlib.metadata.version('dp-fusion-lib')}")
    held, known = 7.92e-6, 9.55e-19  # what the private and the public model give to one token
    private = torch.tensor([1.0 - held, held], dtype=torch.float64)
    public = torch.tensor([1.0 - known, known], dtype=torch.float64)
    weight, reported = library.find_lambda(private, public, 2.0, 0.5)
    mixture = weight * private + (1.0 - weight) * public
    true = math.log(sum(Fraction(float(p)) ** 2 / Fraction(float(q)) for p, q in zip(mixture, public, strict=True)))
    print(
        f"  find_lambda, order 2, bound 0.5: lambda = {weight:g}, divergence reported {reported:.3f}, true {true:.1f}"
    )


@cache
def _model(folder: str) -> None:
    """A small chat model with random weights, in a folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=["<unk>", "<end>"], show_progress=False)
    made.train_from_iterator(["patients came with a cold and went home healthy ; others stayed"], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="<end>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=2048, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12.0)  # so that what is read matters
    model.save_pretrained(folder)


def invisible_ink() -> None:
    """`generate` as it comes, except for a small model: is what it writes random, and what besides the text depends on private texts?"""
    print(f"invink {importlib.metadata.version('invink')}")
    module: Any = importlib.import_module("invink.generate")
    for name in ("load_hf_model", "load_hf_tokenizer", "get_clip", "get_epsilon"):
        setattr(module, name, cache(getattr(module, name)))
    private = ["patients came with a cold"], ["others stayed"]
    with tempfile.TemporaryDirectory() as folder:
        _model(folder)

        def written(texts: list[str], **given: Any) -> tuple[str, str]:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                found = module.generate(
                    texts, folder, "notes", epsilon=EPSILON, delta=DELTA, batch_size=2, num=1, dtype="float32", device_map=-1, topk=20,
                    **given,
                )  # fmt: skip
            return found.texts[0], said.getvalue()

        def texts_of(which: int, count: int) -> list[str]:
            return [written(private[which], max_toks=TOKENS)[0] for _ in range(count)]

        for which in (0, 1):
            found = texts_of(which, 5)
            print(
                f"  the same private text five times, {TOKENS} tokens: {len(set(found))} different texts: {found[0]!r}"
            )
        for each in private:
            (line,) = [line for line in written(each)[1].splitlines() if "max_toks =" in line]
            print(f"  private text of {len(each[0])} characters, max_toks='auto': {line.split(', ')[-1]}")
        audited("as it comes, 4 tokens", lambda texts: written(texts, max_toks=TOKENS)[0], private, FIXED_DRAWS)
        audited(
            "a fresh seed for each text, max_toks='auto'",
            lambda texts: written(texts, random_seed=secrets.randbits(32))[0],
            private,
            FIXED_DRAWS,
        )
        audited(
            "a fresh seed for each text, 1 token",
            lambda texts: written(texts, random_seed=secrets.randbits(32), max_toks=1)[0],
            private,
            FRESH_DRAWS,
        )


def audited(name: str, write: Callable[[list[str]], str], private: tuple[list[str], list[str]], draws: int) -> None:
    """What `black_box_audit` finds between two private texts."""
    from discreet.audit import black_box_audit

    def sampled(texts: list[str], count: int) -> list[str]:
        return [write(texts) for _ in range(count)]

    found = black_box_audit(sampled, list(private), epsilon=2.0 * EPSILON, delta=DELTA, draws=draws)
    print(
        f"  audit of {name}, {draws} draws each: at least {found.empirical_epsilon_lower_bound:.2f} where two texts of epsilon {EPSILON:g} "
        f"may differ by {2 * EPSILON:g}: {'refuted' if found.is_refuted else 'not refuted'} ({found.events[0].description})",
        flush=True,
    )


if __name__ == "__main__":
    main()
