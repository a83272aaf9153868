"""Private texts of a small model that is trained here: how good, beside other ways to make a law private, and how fast.

`python -m benchmarks texts` trains a transformer on the documentation that comes with Python (pydoc's topics), leaves some topics out, and
takes these as private prompts. Each step has the law p of the model that has read the beginning of such a topic, and the law mu of
the model that has read the continuation alone. Ways to make p private are compared at equal range: all of what one private prompt leads
to lies in b mu <= q <= e^range b mu. `upper` of ours is chosen on topics of the training set, which are public here.

Ours and the mollifier keep one box for all prompts, which makes them range-LDP. Clipping (InvisibleInk) and mixing by the step
(PMixED) have a box of that range for each prompt, at a place that depends on it, so two prompts may be told apart by up to twice the
range: they are given that advantage; lines "as private" have half the range, and keep what ours keeps. "best box of each step" has the same
advantage as they have: a box b mu <= q <= e^range b mu with the b that suits p best. What clipping gives lies in one of these boxes, so at no
step can it be better than that.

At last tokens get unequal budgets, by their place in the text or by the entropy of the public law, at equal total: chosen on public texts.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from pydoc_data.topics import topics
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from benchmarks.text_parts.schedules import unequal_budgets
from discreet.torch import fitted_box, fitted_upper, output
from discreet.torch.transformers import generate
from discreet.torch.transformers._models import Context

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LARGE = DEVICE == "cuda"
WORDS = 4096 if LARGE else 512
PROMPT, CONTINUED = (96, 128) if LARGE else (32, 16)
TRAINING_STEPS = 1000 if LARGE else 10
STEPS = 100_000 if LARGE else 64
RANGES = (1.0, 2.0, 4.0) if LARGE else (2.0,)
ROWS = 2048 if LARGE else 32  # that are looked at at once
TEXTS, WRITTEN = (256, 64) if LARGE else (2, 2)  # texts, and tokens of each
MEASURES = ("tv", "reverse_kl")
EXAMPLES = 1024 if LARGE else 32
PLACES = tuple(place / 16 for place in range(1, 15)) if LARGE else (0.25, 0.5)  # of boxes, from e^-range to 1

Box = tuple[float | None, float]  # upper, and the temperature of the reference
Law = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def run() -> None:
    """Train, compare, time."""
    names = sorted(topics)
    held_out, public = names[::5], [name for place, name in enumerate(names) if place % 5]
    tokenizer = tokenizer_of([topics[name] for name in public])
    begun = time.perf_counter()
    model = trained([tokenizer(topics[name])["input_ids"] for name in public])
    print(f"{DEVICE}: {sum(p.numel() for p in model.parameters()):,} parameters, {time.perf_counter() - begun:.0f} s")
    windows = {
        kind: windows_of([tokenizer(topics[name])["input_ids"] for name in which])
        for kind, which in (("private", held_out), ("public", public))
    }
    boxes = chosen(model, windows["public"])
    private = laws(model, windows["private"], STEPS)
    utility(private, boxes)
    unequal_budgets(laws(model, windows["public"], STEPS // 4), private, CONTINUED - 1, EXAMPLES // 4)
    del private
    written(model, windows["private"], boxes)
    speed()


def tokenizer_of(texts: list[str]) -> Any:
    """A tokenizer for these texts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel()
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=WORDS, special_tokens=["<end>"], show_progress=False)
    made.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


def trained(texts: list[list[int]]) -> Any:
    """A small GPT-2 that has read these texts."""
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=256, n_embd=256 if LARGE else 32, n_layer=4 if LARGE else 1, n_head=4, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.2, embd_pdrop=0.2, attn_pdrop=0.2,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).to(DEVICE)
    stream = torch.tensor([token for text in texts for token in (*text, 0)], device=DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, total_steps=TRAINING_STEPS)
    for _ in range(TRAINING_STEPS):
        start = torch.randint(len(stream) - 257, (32 if LARGE else 2,), device=DEVICE)
        batch = stream[start[:, None] + torch.arange(256, device=DEVICE)]
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
    print(f"trained: loss {float(loss.detach()):.2f}")
    return model.eval()


def windows_of(texts: list[list[int]]) -> torch.Tensor:
    """(prompt, continuation) as rows, every 16 tokens one, in an order of their own."""
    size = PROMPT + CONTINUED
    rows = [text[start : start + size] for text in texts for start in range(0, len(text) - size, 16)]
    found = torch.tensor(rows, device=DEVICE)
    return found[torch.randperm(len(found), generator=torch.Generator().manual_seed(2)).to(DEVICE)]


def laws(model: Any, windows: torch.Tensor, steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Logits after the prompt and the continuation so far, and after the continuation so far alone, (rows, words) each, by batches."""
    found, seen = [], 0
    for first in range(0, len(windows), 16 if LARGE else 2):
        batch = windows[first : first + (16 if LARGE else 2)]
        with torch.inference_mode():
            with_prompt = model(batch).logits[:, PROMPT:-1]
            without = model(batch[:, PROMPT:]).logits[:, :-1]
        found.append((with_prompt.reshape(-1, WORDS).float(), without.reshape(-1, WORDS).float()))
        seen += len(found[-1][0])
        if seen >= steps:
            break
    return found


def mechanisms(reach: float, boxes: dict[str, Box]) -> dict[str, Law]:
    """What is compared, at one range: logits of client and public to a law."""
    found: dict[str, Law] = {"p itself": lambda p, m: torch.softmax(p.double(), -1)}
    for name, box in boxes.items():
        found[f"ours, {name}"] = partial(projected, reach=reach, box=box)
    found["mollifier"] = partial(projected, reach=reach, box=(None, 1.0))
    found["best box of each step"] = partial(placed, reach=reach)
    for label, width in (("", reach), (", as private", reach / 2)):
        found[f"clip (InvisibleInk){label}"] = partial(clipped, reach=width)
        found[f"mix by the step (PMixED){label}"] = partial(mixed, reach=width)
    found["linear"] = partial(linear, reach=reach)
    return found


def projected(p: torch.Tensor, m: torch.Tensor, reach: float, box: Box) -> torch.Tensor:
    """The projection onto one box, as it is drawn from."""
    upper, hotter = box
    return output(logits=p, reference=m / hotter, epsilon=reach, upper=upper).double()


def placed(p: torch.Tensor, m: torch.Tensor, reach: float) -> torch.Tensor:
    """The best projection of each row among boxes at many places: as private as clipping, and never worse than the best of these."""
    own = torch.softmax(p.double(), -1)
    best, least = clipped(p, m, reach), None
    for place in PLACES:
        b = math.exp(-reach) + place * -math.expm1(-reach)
        q = projected(p, m, reach, (b * math.expm1(reach) / (1.0 - b), 1.0))
        cost = -(own * q.clamp_min(1e-300).log()).sum(-1, keepdim=True)
        best = q if least is None else torch.where(cost < least, q, best)
        least = cost if least is None else torch.minimum(cost, least)
    return best


def clipped(p: torch.Tensor, m: torch.Tensor, reach: float) -> torch.Tensor:
    """Logits moved from the public ones by at most half the range either way."""
    return torch.softmax(m.double() + (p - m).double().clamp(-reach / 2, reach / 2), -1)


def mixed(p: torch.Tensor, m: torch.Tensor, reach: float) -> torch.Tensor:
    """lambda p + (1 - lambda) mu, with the largest lambda of each row whose ratios to mu are within a factor of e^range."""
    own, public = torch.softmax(p.double(), -1), torch.softmax(m.double(), -1)
    ratio = own / public
    most, least = ratio.amax(-1, keepdim=True) - 1.0, ratio.amin(-1, keepdim=True) - 1.0
    room = most - math.exp(reach) * least
    weight = torch.where(room > 0, math.expm1(reach) / room, torch.ones_like(room)).clamp(0.0, 1.0)
    return weight * own + (1.0 - weight) * public


def linear(p: torch.Tensor, m: torch.Tensor, reach: float) -> torch.Tensor:
    """lambda p + (1 - lambda) mu with the lambda that keeps every prompt private: it depends on the smallest mu alone."""
    own, public = torch.softmax(p.double(), -1), torch.softmax(m.double(), -1)
    grown = math.expm1(reach)
    weight = grown / (grown + 1.0 / public.amin(-1, keepdim=True))
    return weight * own + (1.0 - weight) * public


def chosen(model: Any, windows: torch.Tensor) -> dict[float, dict[str, Box]]:
    """Boxes for each range, by each measure, on public steps."""
    logits, reference = (torch.cat(part)[:EXAMPLES] for part in zip(*laws(model, windows, EXAMPLES), strict=True))
    print(f"boxes are chosen on {len(logits):,} public steps")
    found: dict[float, dict[str, Box]] = {}
    for reach in RANGES:
        box = fitted_box(epsilon=reach, logits=logits, reference=reference)
        hotter = box.reference_temperature
        boxes: dict[str, Box] = {"box by kl": (box.upper, hotter)}
        for measure in MEASURES:
            upper = fitted_upper(epsilon=reach, logits=logits, reference=reference / hotter, measure=measure)
            boxes[f"box by {measure}"] = upper, hotter
        boxes["around mu itself, by kl"] = fitted_upper(epsilon=reach, logits=logits, reference=reference), 1.0
        found[reach] = boxes
    return found


def utility(rows: list[tuple[torch.Tensor, torch.Tensor]], boxes: dict[float, dict[str, Box]]) -> None:
    """Mean KL and TV from p to q over all steps, and the perplexity under p of what q draws there."""
    count = sum(len(p) for p, _ in rows)
    print(f"{count:,} steps on topics that the model has not read")
    print(f"{'range':>6}{'':>38}{'mean KL':>10}{'mean TV':>10}{'perplexity under p':>20}")
    for reach in RANGES:
        told = ", ".join(f"{name}: {upper:.4g} at {hotter:.3g}" for name, (upper, hotter) in boxes[reach].items())
        print(f"{reach:>6g}  upper, and temperature of the reference: {told}")
        ways = mechanisms(reach, boxes[reach])
        sums = {name: torch.zeros(3, dtype=torch.float64, device=DEVICE) for name in ways}
        for whole, beside in rows:
            for p, m in zip(whole.split(ROWS), beside.split(ROWS), strict=True):
                log_own = torch.log_softmax(p.double(), -1).clamp_min(-700.0)
                own = log_own.exp()
                for name, law in ways.items():
                    q = law(p, m)
                    sums[name][0] += (own * (log_own - q.clamp_min(1e-300).log())).sum()
                    sums[name][1] += 0.5 * (own - q).abs().sum()
                    sums[name][2] -= (q * log_own).sum()
        for name, found in sums.items():
            kl, tv, entropy = (found / count).tolist()
            print(f"{'':>6}{name:>38}{kl:>10.4f}{tv:>10.4f}{math.exp(entropy):>20.2f}", flush=True)


def written(model: Any, windows: torch.Tensor, boxes: dict[float, dict[str, Box]]) -> None:
    """Texts that each way writes, after private prompts: their perplexity under the model that has read the prompt."""
    prompts = [row[:PROMPT].tolist() for row in windows[:TEXTS]]
    print(f"texts of {WRITTEN} tokens after {len(prompts)} private prompts: perplexity under the private model")
    for reach in RANGES:
        for name, law in mechanisms(reach, boxes[reach]).items():
            private, public = Context(model, prompts, 0), Context(model, [[0]] * len(prompts), 0)
            total = 0.0
            for _ in range(WRITTEN):
                p, m = private.next_token_logits().float(), public.next_token_logits().float()
                token = torch.multinomial(law(p, m), 1)[:, 0]
                total -= float(torch.log_softmax(p.double(), -1).gather(1, token[:, None]).sum())
                private.append_tokens(token)
                public.append_tokens(token)
            print(f"{reach:>6g}{name:>38}{math.exp(total / len(prompts) / WRITTEN):>10.2f}", flush=True)


def speed() -> None:
    """Tokens a second of `generate`, beside a loop that runs both contexts and draws by torch: a model of the shape of a usual one."""
    torch.manual_seed(1)
    layers, width, words = (24, 1024, 50_257) if LARGE else (2, 64, 512)
    config = GPT2Config(
        vocab_size=words, n_layer=layers, n_embd=width, n_head=width // 64, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config).to(DEVICE, torch.bfloat16 if LARGE else torch.float32).eval()
    model.generation_config.eos_token_id = None
    tokenizer = _Numbers(words)
    count = 64 if LARGE else 4
    for rows in (1, 16):
        public, private = " ".join(["1"] * 16), [" ".join(["2"] * 200)] * rows
        ours, plain = seconds(
            partial(
                generate, model, tokenizer, public=public, private=private, epsilon=2.0, tokens=count, together=True
            ),
            partial(both_contexts, model, public, private, count),
        )
        print(
            f"{rows:>3} texts of {count} tokens, {words:,} words: {rows * count / ours:.0f} tokens a second, {ours / plain:.3f} times "
            "a loop over both contexts that is not private"
        )


class _Numbers:
    """A tokenizer whose words are numbers: all that the loop asks of one."""

    pad_token_id, bos_token_id, eos_token_id = 0, 0, None

    def __init__(self, words: int) -> None:
        self._words = words

    def __len__(self) -> int:
        return self._words

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [int(word) for word in text.split()]}

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return " ".join(map(str, tokens))


def both_contexts(model: Any, public: str, private: list[str], count: int) -> None:
    """The loop of `generate`, drawing from the private law by torch."""
    read = [[int(word) for word in text.split()] for text in (*private, public)]
    own, common = Context(model, read[:-1], 0), Context(model, [read[-1]] * len(private), 0)
    for _ in range(count):
        p, _m = own.next_token_logits(), common.next_token_logits()
        token = torch.multinomial(torch.softmax(p.float(), -1), 1)[:, 0]
        latest = torch.tensor(token.tolist())
        own.append_tokens(latest)
        common.append_tokens(latest)


def seconds(*calls: Callable[[], Any], times: int = 9) -> list[float]:
    """The median of a few runs of each, which take turns, after one that warms up."""
    found: list[list[float]] = [[] for _ in calls]
    for turn in range(times + 1):
        for call, took in zip(calls, found, strict=True):
            begun = time.perf_counter()
            call()
            if turn:
                took.append(time.perf_counter() - begun)
    return [sorted(took)[len(took) // 2] for took in found]
