"""The exact draw of a sample: integer weights within an integer box, and the uniform integers that select an outcome."""

from discreet._base import getattr_for_old_names, imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.release._client_draws import (
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
        choose_client_draw_functions as choose_client_draw_functions,
        fractions_of_upper_53_bits as fractions_of_upper_53_bits,
        integer_laws_and_messages as integer_laws_and_messages,
        make_draw_plan_of_lattice as make_draw_plan_of_lattice,
        pseudo_random_word_rows as pseudo_random_word_rows,
        store_sort_words_and_add_digest as store_sort_words_and_add_digest,
    )
    from discreet.release._keyed_reports import add_progression_counts as add_progression_counts
    from discreet.release._lattice import (
        TOTAL,
        Lattice,
        are_row_sums_at_most as are_row_sums_at_most,
        outcome_in_constant_time,
        outcomes,
        weights,
    )
    from discreet.release._randomness import (
        BITS as BITS,
        DIGEST_WORDS as DIGEST_WORDS,
        WORDS as WORDS,
        FixedIntegers as FixedIntegers,
        InputDigest as InputDigest,
        IntegerFiller as IntegerFiller,
        Question as Question,
        Randomness,
        RunKey as RunKey,
        Secret as Secret,
        SystemEntropy,
        as_secret as as_secret,
        client_message as client_message,
        draw_integers_below as draw_integers_below,
        entropy_bytes as entropy_bytes,
        entropy_or_seeded_randomness as entropy_or_seeded_randomness,
        fresh_secret as fresh_secret,
        generator,
        integer_law_of_counts as integer_law_of_counts,
        keyed_word_rows as keyed_word_rows,
        keyed_word_stream as keyed_word_stream,
        next_integer_below as next_integer_below,
        parse_secret as parse_secret,
        read_secret as read_secret,
        secret_file_content as secret_file_content,
        seeded_randomness,
        write_secret as write_secret,
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

__getattr__ = getattr_for_old_names(__name__, {"seeded": "seeded_randomness"})
