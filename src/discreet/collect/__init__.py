"""The collector: a service that takes one sample of each client, counts each client once, and shows estimates."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals(), extra="collect"):
    from discreet.collect._catalogue import (
        labelled_agreement_coding_and_sampler as labelled_agreement_coding_and_sampler,
    )
    from discreet.collect._counting import SEAL_VARIABLE as SEAL_VARIABLE, token_digest as token_digest
    from discreet.collect._pages import (
        add_tokens_to_store as add_tokens_to_store,
        invitation_links as invitation_links,
        read_tokens as read_tokens,
        write_fresh_token_file as write_fresh_token_file,
        write_invitation_folder as write_invitation_folder,
    )
    from discreet.collect._results import close_collection, export, publish
    from discreet.collect._service import service
    from discreet.collect._serving import serve
    from discreet.collect._sqlite import (
        is_store_name as is_store_name,
        open_store,
        store_display_name as store_display_name,
    )
    from discreet.collect._store import find_agreement_by_prefix as find_agreement_by_prefix


__all__ = ["close_collection", "export", "open_store", "publish", "serve", "service"]
