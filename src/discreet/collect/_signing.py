"""Agreements of a store, signed by the collector's key: what devices that have pinned the key believe.

A signature says that an agreement, in its collection and after the one it follows, is collected at certain addresses
(`discreet._protocol.Statement`). It is kept in the store beside the agreement, so that every service of the store shows it, with the key or
without. The key itself stays in its file. A store has one key: another one is taken only if whoever runs the service says so, since devices
that have pinned the first one refuse the second.
"""

from collections.abc import Sequence

from discreet._protocol import CollectionStatement, CollectorKey, check_addresses, has_valid_signature, short_key
from discreet.collect._store import Store
from discreet.errors import DiscreetError


def sign_agreements(store: Store, key: CollectorKey, addresses: Sequence[str], *, replace_key: bool = False) -> None:
    """Sign every agreement of a store that this key has not signed for these addresses yet.

    Args:
        store: whose agreements are signed, and where the signatures are kept.
        key: the collector's.
        addresses: where devices reach the collector.
        replace_key: whether signatures by another key may be replaced.

    Raises:
        DiscreetError: for addresses that are none; and for a store that another key has signed, unless that may be replaced.
    """
    checked = check_addresses(addresses)
    check_key(store, key, replace_key=replace_key)
    for one in store.agreements():
        statement = CollectionStatement(
            agreement=one.agreement.id, collection=one.collection, follows=one.follows, addresses=checked
        )
        if one.signed is None or one.signed.key != key.public or not has_valid_signature(statement, one.signed):
            store.sign(one.agreement.id, key.sign(statement))


def check_key(store: Store, key: CollectorKey | None, *, replace_key: bool) -> None:
    """Refuse a key that is not the one that a store is signed by, unless that may be replaced. None: a key that is to be made."""
    own = None if key is None else key.public
    others = sorted({one.signed.key for one in store.agreements() if one.signed is not None} - {own})
    if others and not replace_key:
        named = "a new one" if own is None else short_key(own)
        raise DiscreetError(
            f"the store is signed by another key, {short_key(others[0])}, not by {named}, and devices that have pinned it "
            "would refuse this one; give the file of that key, or replace it with --replace-key"
        )
