"""`release`, `weights` and `output` for tensors: the distribution of `OptimalSampler`, drawn on the tensors' device.

For every row of a client, its integers W satisfy L <= W <= U, with L and U from the reference alone and U <= e^epsilon L
(`discreet.release._lattice`, `discreet.torch._host`). Every outcome is at most e^epsilon times as likely for one row as for any other
over the same reference. Preprocessing of the client's own row therefore costs no privacy: temperature, top-k, top-p, a mask. Preprocessing
of the reference must not depend on the client: a mask there (-inf) determines which outcomes can occur at all, and has to be public.

CUDA tensors of float32, bfloat16 and float16 are drawn by kernels (`discreet.torch._gpu`) if Triton is installed; float64 and everything
else by `discreet.torch._host`, in the arithmetic of the numpy path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, cast

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from discreet.errors import DiscreetError
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import warn_of_weak_privacy
from discreet.release import TOTAL, FixedIntegers, IntegerFiller, SystemEntropy, seeded_randomness
from discreet.torch import _host as host
from discreet.torch._host import TensorRows, Terms, make_terms, output_laws_and_free_outcomes, read_tensor_rows

P = ParamSpec("P")
_TRITON = find_spec("triton") is not None


def _read_rows_and_terms(
    *,
    epsilon: float | None = None,
    privacy: Privacy | None = None,
    logits: torch.Tensor | None = None,
    probabilities: torch.Tensor | None = None,
    reference: torch.Tensor | None = None,
    upper: float | None = None,
    temperature: float = 1.0,
) -> tuple[TensorRows, Terms]:
    """The rows and the terms of a call, from the keywords that every function here takes.

    Args:
        epsilon: the privacy budget of one outcome, in (0, inf); short for `privacy=Pure(epsilon)`.
        privacy: a notion of privacy in place of epsilon: `Approximate(...)`, `Gaussian(...)`; then a reference needs `upper`.
        logits: the clients' distributions, (..., k): logarithms of probabilities up to a constant; -inf is a probability of 0. Or:
        probabilities: the same as probabilities that sum to one.
        reference: the public distribution, of the same kind: one row (k,) for all or one for each, (..., k). An outcome with -inf (or 0)
            here is never drawn. By default uniform.
        upper: the largest ratio of a client's probability to the reference's that the box is made for, above 1. If it is small, q stays
            near p where p is near the reference. By default k without a reference (the sampler of `Simplex(k)`), and e^(epsilon/2) + 1
            with one, which is Husain's mollifier. `fitted_upper` chooses it on public rows.
        temperature: divides the clients' logits.
    """
    terms = _cached_or_new_terms(epsilon, privacy, upper)
    warn_of_weak_privacy(terms.privacy)
    return read_tensor_rows(logits, probabilities, reference, temperature), terms


_KEYWORDS = frozenset(inspect.signature(_read_rows_and_terms).parameters)


@lru_cache(maxsize=256, typed=True)
def _make_cached_terms(epsilon: float | None, privacy: Privacy | None, upper: float | None) -> Terms:
    return make_terms(epsilon=epsilon, privacy=privacy, upper=upper)


def _cached_or_new_terms(epsilon: float | None, privacy: Privacy | None, upper: float | None) -> Terms:
    """The terms, cached between calls; unhashable numbers (arrays without an axis) are not cached."""
    try:
        return _make_cached_terms(epsilon, privacy, upper)
    except TypeError:
        return make_terms(epsilon=epsilon, privacy=privacy, upper=upper)


def _accept_keywords_for_rows_and_terms(
    reader: Callable[P, tuple[TensorRows, Terms]],
) -> Callable[[Callable[[TensorRows, Terms], torch.Tensor]], Callable[P, torch.Tensor]]:
    """A function of rows and terms as one of the keywords that make them, with their documentation, so that the list exists once."""
    signature = inspect.signature(reader)
    arguments = (reader.__doc__ or "").partition("\n\n")[2].rstrip()

    def accept_keywords(work: Callable[[TensorRows, Terms], torch.Tensor]) -> Callable[P, torch.Tensor]:
        def call_with_keywords(*arguments: P.args, **keywords: P.kwargs) -> torch.Tensor:
            _refuse_other_arguments(work.__name__, arguments, keywords)
            return work(*reader(*arguments, **keywords))

        call_with_keywords.__name__, call_with_keywords.__qualname__ = work.__name__, work.__qualname__
        call_with_keywords.__module__ = work.__module__
        call_with_keywords.__doc__ = (work.__doc__ or "").replace("    Returns:", f"{arguments}\n\n    Returns:", 1)
        call_with_keywords.__dict__["__signature__"] = signature.replace(return_annotation="torch.Tensor")
        return call_with_keywords

    return accept_keywords


def _refuse_other_arguments(function: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """A TypeError that names the public function, for what none of them takes: an argument without a keyword, an unknown keyword."""
    if arguments:
        raise TypeError(
            f"discreet.torch.{function} takes keywords alone: write {function}(logits=..., epsilon=...), or probabilities="
        )
    for keyword in keywords:
        if keyword not in _KEYWORDS:
            raise TypeError(
                f"discreet.torch.{function} takes no argument {keyword!r}; help(discreet.torch.{function}) lists those it takes"
            )


def _accept_rng_keyword(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The same function with a keyword `rng`, for reproducible draws."""
    rng_text = "        rng: a seeded numpy or torch Generator, for experiments; the outcomes are then NOT private, and a warning says so.\n"

    @wraps(draw)
    def call_with_generator(*arguments: Any, rng: Any = None, **keywords: Any) -> torch.Tensor:
        if rng is None:
            return draw(*arguments, **keywords)
        _refuse_other_arguments(draw.__name__, arguments, keywords)
        rows, terms = _read_rows_and_terms(**keywords)
        source = FixedIntegers(seeded_randomness(as_numpy_generator(rng)).integers(len(rows.p)))
        return draw_outcomes(rows, terms, source).reshape(rows.shape)

    signature = inspect.signature(draw)
    rng = inspect.Parameter(
        "rng", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="np.random.Generator | torch.Generator | None"
    )
    call_with_generator.__dict__["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), rng])
    call_with_generator.__doc__ = (draw.__doc__ or "").replace("\n\n    Returns:", f"\n{rng_text}\n    Returns:", 1)
    return call_with_generator


def _make_differentiable(describe: Callable[P, torch.Tensor]) -> Callable[P, torch.Tensor]:
    """The same function, differentiable in the clients' rows where torch records gradients."""

    @wraps(describe)
    def call_with_gradients(*arguments: Any, **keywords: Any) -> torch.Tensor:
        refuse_gradients_of_reference(keywords.get("reference"))
        for tensor in (keywords.get("logits"), keywords.get("probabilities")):
            if isinstance(tensor, torch.Tensor) and needs_gradients(tensor):
                _refuse_other_arguments(describe.__name__, arguments, keywords)
                return differentiable_output(tensor, *_read_rows_and_terms(**keywords))
        return describe(*arguments, **keywords)

    return cast("Callable[P, torch.Tensor]", call_with_gradients)


@_accept_rng_keyword
@_accept_keywords_for_rows_and_terms(_read_rows_and_terms)
def release(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """One private outcome for each row, from integer weights and the operating system's entropy.

    Each call spends its budget anew for every row. Over a reference the box is b mu <= q <= e^epsilon b mu with
    b = upper/(e^epsilon + upper - 1).

    More than 512 rows that kernels draw on a GPU take their integers from ChaCha20 (RFC 8439), under a key of 256 bits that each call reads
    from the operating system.
    The guarantee then also rests on ChaCha20 being a pseudorandom function. A call inside the capture of a CUDA graph is an error.

    Returns:
        Outcome numbers (...) in int64, on the input's device.

    Raises:
        DiscreetError: for an invalid distribution, a reference that does not fit, or terms out of range. No outcome has left then.

    Example:
        >>> tokens = release(logits=private_logits, reference=public_logits, epsilon=2.0)
    """
    outcomes = draw_outcomes(rows, terms, SystemEntropy())
    return outcomes if len(rows.shape) == 1 else outcomes.reshape(rows.shape)


@_accept_keywords_for_rows_and_terms(_read_rows_and_terms)
def weights(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """The integers that `release` draws with: each row sums to 2^62, and over one reference no entry exceeds e^epsilon times another's.

    Returns:
        Whole numbers (..., k) in int64, on the input's device.

    Raises:
        DiscreetError: for an invalid distribution, a reference that does not fit, or terms out of range.
    """
    return _integer_weights(rows, terms).reshape(*rows.shape, rows.size)


@_make_differentiable
@_accept_keywords_for_rows_and_terms(_read_rows_and_terms)
def output(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """The output distribution Q(.|P) of each row, differentiable in logits or probabilities.

    The derivative is that of the projection, in closed form; where an outcome just reaches its bound, it is the one of the clipped side. A
    tensor that needs gradients takes the arithmetic of float64 on the host, also from a GPU. A reference that needs gradients is refused.

    Returns:
        Probabilities (..., k) in the input's dtype and on its device.

    Raises:
        DiscreetError: for an invalid distribution, a reference that does not fit, or terms out of range.
    """
    on_gpu = _are_drawn_by_gpu_kernels(rows)
    laws = (
        _integer_weights(rows, terms).to(torch.float64) / TOTAL
        if on_gpu
        else torch.from_numpy(host.output_laws_on_host(rows, terms))
    )
    return laws.to(rows.p.device, rows.p.dtype).reshape(*rows.shape, rows.size)


def _refuse_graph_capture(rows: TensorRows) -> None:
    """Refuse to be captured in a CUDA graph: each replay would draw with the randomness of the first, and nobody would look for errors."""
    if rows.p.is_cuda and torch.cuda.is_current_stream_capturing():
        raise DiscreetError(
            "discreet.torch cannot be captured in a CUDA graph: each replay would draw with the same randomness; "
            "end the graph with the logits, and call it on them after each replay"
        )


def _are_drawn_by_gpu_kernels(rows: TensorRows) -> bool:
    """Whether the kernels draw these rows: decided by dtype and device, never by a number in them."""
    return _TRITON and rows.p.is_cuda and not rows.has_float64


def draw_outcomes(rows: TensorRows, terms: Terms, source: IntegerFiller) -> torch.Tensor:
    """One outcome for each row, from one integer in [0, 2^62) each: the work of `release`, with any source of integers."""
    _refuse_graph_capture(rows)
    if _are_drawn_by_gpu_kernels(rows):
        from discreet.torch import _gpu as gpu

        return gpu.draw_outcomes_on_gpu(rows, terms, source)
    uniform = np.empty(len(rows.p), dtype=np.int64)
    for _ in source.fill_by_parts(uniform):
        pass
    return torch.from_numpy(host.draw_outcomes_on_host(rows, terms, uniform)).to(rows.p.device)


def _integer_weights(rows: TensorRows, terms: Terms) -> torch.Tensor:
    _refuse_graph_capture(rows)
    if _are_drawn_by_gpu_kernels(rows):
        from discreet.torch import _gpu as gpu

        return gpu.integer_weights_on_gpu(rows, terms)
    return torch.from_numpy(host.integer_weights_on_host(rows, terms)).to(rows.p.device)


def needs_gradients(tensor: Any) -> bool:
    """Whether torch records what happens to this tensor."""
    return isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled()


def refuse_gradients_of_reference(reference: Any) -> None:
    """Refuse a reference that would get no gradient without a word."""
    if needs_gradients(reference):
        raise DiscreetError(
            "reference needs gradients, and output is differentiated in the clients' rows alone: the box must be public; pass "
            "reference.detach()"
        )


def differentiable_output(tensor: torch.Tensor, rows: TensorRows, terms: Terms) -> torch.Tensor:
    """`output` as a function of the given tensor (..., k), by the host's arithmetic on every device."""
    host_laws, host_free = output_laws_and_free_outcomes(rows, terms)
    device = tensor.device
    laws, free = torch.from_numpy(host_laws).to(device), torch.from_numpy(host_free).to(device)
    outputs: torch.Tensor = _Projection.apply(
        tensor.reshape(-1, rows.size), laws, free, rows.temperature if rows.logits else None
    )
    return outputs.reshape(tensor.shape)


class _Projection(torch.autograd.Function):
    """The output that was computed, with its derivative in the clients' rows, in closed form.

    The projection is q = clip(a p, lower, upper), with a such that q sums to one. Let M be the outcomes between their bounds, s = q(M) and
    r_x = p_x/p(M) on M. On M, q_x = s r_x, and s is what the clipped outcomes leave. A small change of p changes neither M nor s, so that

        dq_x = (s/p(M)) (dp_x - r_x sum_M dp)   on M,  else 0;      in logits l of p:   dq_x = q_x (dl_x - sum_M r dl)/T

    Where an outcome just reaches a bound the derivative jumps, and the one of the clipped side is returned. The box depends on the reference
    alone, in which nothing is differentiated.

    A gradient is computed from the client's row and is not private. It is for training and for analysis.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, laws: torch.Tensor, free: torch.Tensor, temperature: float | None
    ) -> torch.Tensor:
        ctx.save_for_backward(rows, laws, free)
        ctx.temperature = temperature
        return laws.to(rows.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        rows, laws, free = ctx.saved_tensors
        free_laws = torch.where(free, laws, 0.0)
        mass = free_laws.sum(-1, keepdim=True)
        slope = gradient.to(torch.float64)
        average = (free_laws * slope).sum(-1, keepdim=True) / torch.where(mass > 0.0, mass, 1.0)
        deviation = torch.where(free, slope - average, 0.0)
        if ctx.temperature is not None:
            return (free_laws * deviation / ctx.temperature).to(rows.dtype), None, None, None
        free_mass = torch.where(free, rows.to(torch.float64), 0.0).sum(-1, keepdim=True)
        return (mass / torch.where(free_mass > 0.0, free_mass, 1.0) * deviation).to(rows.dtype), None, None, None


def as_numpy_generator(rng: Any) -> Any:
    """A numpy Generator for the one given; a torch Generator is asked for one number, which seeds it."""
    if isinstance(rng, torch.Generator):
        seed = int(torch.randint(1 << 62, (1,), generator=rng, device=rng.device).item())
        return np.random.default_rng(seed)
    return rng
