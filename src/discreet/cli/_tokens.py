"""`discreet tokens`: a text of a language model that keeps its prompt private."""

import sys
from pathlib import Path
from typing import Annotated

from discreet._base.files import error_reason
from discreet.cli._options import AllowLarge, JsonOutput, argument, option, refuse_given, refuse_large_epsilon
from discreet.cli._printing import print_blocks, safe_text, write_json
from discreet.errors import DiscreetError
from discreet.ledger import Budget, Ledger
from discreet.torch import transformers
from discreet.torch.transformers import PrivateText

_STANDARD = "-"


def tokens(
    model: Annotated[Path, argument("MODEL", "Folder of a causal model, as save_pretrained writes it.")],
    public: Annotated[Path, option("FILE", "The public prompt.")],
    private: Annotated[str, option("FILE", "The private prompt; - for standard input.")],
    epsilon: Annotated[float, option("E", "Budget of one token.")],
    tokens: Annotated[int, option("N", "Largest number of tokens.")],
    delta: Annotated[float, option("D", "Probability with which the guarantee may fail.")] = 1e-6,
    total: Annotated[
        float | None, option("E", "Budget of all tokens together at that delta. [default: no limit]")
    ] = None,
    upper: Annotated[
        float | None,
        option("U", "Largest ratio of a token's private to its public probability. [default: e^(E/2) + 1]"),
    ] = None,
    examples: Annotated[
        Path | None,
        option("FILE", "Instead: public prompts like the private ones, one on each line, to choose the terms."),
    ] = None,
    ledger: Annotated[Path | None, option("FILE", "The client's ledger, charged before a token leaves.")] = None,
    number: Annotated[int, option("I", "Number of the text under these terms.")] = 1,
    temperature: Annotated[float, option("T", "Temperature of both distributions.")] = 1.0,
    reference_temperature: Annotated[
        float | None, option("T", "Further temperature of the public one. [default: 1]")
    ] = None,
    top_k: Annotated[int | None, option("K", "Only the K likeliest tokens of the public distribution.")] = None,
    top_p: Annotated[
        float | None, option("P", "Only the likeliest tokens of the public distribution, with mass P.")
    ] = None,
    purpose: Annotated[str, option("TEXT", "What the text is for.")] = "",
    device: Annotated[str | None, option("NAME", "Such as cuda or cpu. [default: cuda if there is one]")] = None,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
) -> None:
    """Generate a private text with a language model. Each token is drawn from a box around its distribution under the public prompt."""
    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    if examples is not None:
        chosen = {"--upper": upper, "--reference-temperature": reference_temperature}
        refuse_given(chosen, "and --examples, which chooses it, exclude each other; give one of the two")
    opening, secret = (
        _read_prompt_file(public),
        sys.stdin.read() if private == _STANDARD else _read_prompt_file(Path(private)),
    )
    budget = None if total is None else Budget(epsilon=total, delta=delta)
    book = None if ledger is None else Ledger(ledger)
    found = transformers.load_model(model, device=device, quiet=True)
    if examples is not None:
        lines = [line for line in _read_prompt_file(examples).splitlines() if line.strip()]
        box = transformers.box_for(
            found.model, found.tokenizer, public=opening, examples=lines, epsilon=epsilon, temperature=temperature
        )
        upper, reference_temperature = box.upper, box.reference_temperature
    flatter = 1.0 if reference_temperature is None else reference_temperature
    text = transformers.generate(
        found.model, found.tokenizer, public=opening, private=secret, epsilon=epsilon, tokens=tokens, upper=upper, delta=delta,
        budget=budget, ledger=book, number=number, temperature=temperature, reference_temperature=flatter, top_k=top_k, top_p=top_p,
        model_name=found.name, purpose=purpose,
    )  # fmt: skip
    assert isinstance(text, PrivateText)
    if json:
        write_json({
            "text": text.text, "tokens": list(text.tokens), "upper": upper, "reference_temperature": flatter,
            "statement": text.statement.document,
        })  # fmt: skip
        return
    print_blocks(safe_text(text.text, keep="\n"), safe_text(text.statement, keep="\n"))


def _read_prompt_file(path: Path) -> str:
    """The prompt in a file, without the final line break."""
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DiscreetError(f"{path} cannot be read: {error_reason(error)}") from None
