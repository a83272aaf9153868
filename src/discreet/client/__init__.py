"""Devices and gateways of a collection: they read the agreement, charge the ledger, release a sample and send it, once."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.client._client import Client, Receipt, pinned_agreement_or_id as pinned_agreement_or_id
    from discreet.client._gateway import Sent, send_table
    from discreet.client._protocol import (
        AGREEMENT as AGREEMENT,
        ARROW as ARROW,
        CHANGE as CHANGE,
        COLLECTION as COLLECTION,
        ESTIMATE as ESTIMATE,
        GROUPS as GROUPS,
        HEALTH as HEALTH,
        JSON as JSON,
        METRICS as METRICS,
        MOST_BATCH as MOST_BATCH,
        MOST_NAME as MOST_NAME,
        POOLED as POOLED,
        SAMPLES as SAMPLES,
        WEIGHTS as WEIGHTS,
        CollectionStatement as CollectionStatement,
        CollectorKey as CollectorKey,
        StatementSignature as StatementSignature,
        create_collector_key_file as create_collector_key_file,
        has_valid_signature as has_valid_signature,
        is_host_this_machine as is_host_this_machine,
        normalise_addresses as normalise_addresses,
        parse_address as parse_address,
        read_collector_key as read_collector_key,
        short_key_text as short_key_text,
        signature_from_json_or_none as signature_from_json_or_none,
    )

__all__ = ["Client", "Receipt", "Sent", "send_table"]
