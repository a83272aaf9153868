"""The exact draw of a sample: integer weights within an integer box, and the uniform integers that select an outcome."""

from discreet._base.doors import imports_on_first_use, old_names

with imports_on_first_use(globals()):
    from discreet.release._keyed import (
        DIGEST_WORDS as DIGEST_WORDS,
        WORDS as WORDS,
        InputDigest as InputDigest,
        Question as Question,
        RunKey as RunKey,
        Secret as Secret,
        as_secret as as_secret,
        client_message as client_message,
        draw_below as draw_below,
        fresh_secret as fresh_secret,
        integer_law_of_counts as integer_law_of_counts,
        keyed_word_rows as keyed_word_rows,
        keyed_words as keyed_words,
        next_below as next_below,
        parse_secret as parse_secret,
        read_secret as read_secret,
        secret_line as secret_line,
        write_secret as write_secret,
    )
    from discreet.release._lattice import TOTAL, Lattice, outcome_in_constant_time, outcomes, weights
    from discreet.release._plain import (
        AFFINE_BLOCKS as AFFINE_BLOCKS,
        MASKED_BLOCKS as MASKED_BLOCKS,
        RANKED_BLOCKS as RANKED_BLOCKS,
        REFUSED_INFINITE as REFUSED_INFINITE,
        REFUSED_NAN as REFUSED_NAN,
        REFUSED_NEGATIVE as REFUSED_NEGATIVE,
        REFUSED_OUTSIDE as REFUSED_OUTSIDE,
        REFUSED_OVERFLOW as REFUSED_OVERFLOW,
        REFUSED_TOO_MANY as REFUSED_TOO_MANY,
        SINGLE_BLOCKS as SINGLE_BLOCKS,
        ClientColumns as ClientColumns,
        RefusedRow as RefusedRow,
        ReportPlan as ReportPlan,
        laws_and_messages as laws_and_messages,
        note_words as note_words,
        plan_of as plan_of,
        word_rows as word_rows,
    )
    from discreet.release._randomness import (
        BITS as BITS,
        FixedIntegers as FixedIntegers,
        IntegerFiller as IntegerFiller,
        Randomness,
        SystemEntropy,
        entropy_bytes as entropy_bytes,
        generator,
        seeded_randomness,
    )

__all__ = [
    "TOTAL",
    "Lattice",
    "Randomness",
    "SystemEntropy",
    "generator",
    "outcome_in_constant_time",
    "outcomes",
    "seeded_randomness",
    "weights",
]

__getattr__ = old_names(__name__, {"seeded": "seeded_randomness"})
