"""Devices and gateways that take part in a collection: read what is agreed on, charge the ledger, release, send; never twice."""

from discreet.client._client import Client, Receipt
from discreet.client._gateway import Sent, send_table

__all__ = ["Client", "Receipt", "Sent", "send_table"]
