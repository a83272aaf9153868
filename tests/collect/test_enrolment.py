"""Tokens: whoever holds one speaks once, whoever holds none does not, and gateways name their clients themselves."""

import asyncio
import json
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from discreet.collect import _catalogue, open_store, service
from discreet.collect._catalogue import gateway_id_from_authorization
from discreet.collect._counting import token_digest
from discreet.collect._pages import add_tokens_to_store, read_tokens, write_fresh_token_file
from discreet.collect._requests import RequestProblem
from discreet.collect._store import Store
from discreet.errors import DiscreetError
from tests.cli.conftest import Run, refusal, run
from tests.collect.postgres import Server, until
from tests.collect.running import Collector, agreed, one, running

__all__ = ["refusal", "run"]


def test_tokens_are_private_and_all_different(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    write_fresh_token_file(path, 500)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(set(read_tokens(path))) == 500
    with pytest.raises(DiscreetError, match="exists already"):
        write_fresh_token_file(path, 1)
    os.chmod(path, 0o644)
    with pytest.raises(DiscreetError, match="chmod 600"):
        read_tokens(path)


@pytest.mark.parametrize(
    "content", [b"", b"short\n", b"\xff" * 20, b"a" * 20 + b"\n" + b"a" * 20, b"a" * 201, b"a" * 16 + b"\x00"]
)
def test_what_are_no_tokens_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokens.txt"
    path.write_bytes(content)
    os.chmod(path, 0o600)
    with pytest.raises(DiscreetError, match="token"):
        read_tokens(path)


def test_a_folder_or_nothing_is_no_file_of_tokens(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "\0"):
        with pytest.raises(DiscreetError, match="file of tokens"):
            read_tokens(path)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "samples.db")
    server: Server = request.getfixturevalue("postgres")
    return server.database()


CLIENT, GATEWAY = "client-token-0001", "gateway-token-001"


def test_without_tokens_everybody_speaks_and_no_header_matters(where: str) -> None:
    with closing(open_store(where)) as store:
        everybody = store.read_enrolment()
    assert not everybody.is_needed
    for said in ([], ["Basic abc"], ["Bearer abc"]):
        assert gateway_id_from_authorization(everybody, said) is None


def test_a_token_of_a_gateway_is_no_client_and_a_client_no_gateway(where: str) -> None:
    with closing(open_store(where)) as store:
        assert add_tokens_to_store(store, [CLIENT], [GATEWAY]) == 2
        assert add_tokens_to_store(store, [CLIENT], [GATEWAY]) == 0
        enrolled = store.read_enrolment()
        assert enrolled.is_needed
        assert store.unrevoked_client_tokens_among([token_digest(CLIENT), token_digest(GATEWAY)]) == {
            token_digest(CLIENT)
        }
        for tokens, gateways in (([GATEWAY], []), ([], [CLIENT]), (["another-token-001"], [CLIENT])):
            with pytest.raises(DiscreetError, match="share 1 token"):
                add_tokens_to_store(store, tokens, gateways)
        assert store.read_enrolment() == enrolled
        assert store.unrevoked_client_tokens_among([token_digest("another-token-001")]) == set()
    assert gateway_id_from_authorization(enrolled, []) is None
    assert gateway_id_from_authorization(enrolled, [f"Basic {GATEWAY}"]) is None
    assert gateway_id_from_authorization(enrolled, [f"bearer {GATEWAY}"]) == enrolled.gateways[token_digest(GATEWAY)]
    for said in (f"Bearer {CLIENT}", "Bearer ", "Bearer é", f"Bearer {GATEWAY}0"):
        with pytest.raises(RequestProblem) as refused:
            gateway_id_from_authorization(enrolled, [said])
        assert refused.value.status == 401
        assert refused.value.headers == {"WWW-Authenticate": "Bearer"}


def test_a_token_that_is_revoked_stays_so_and_the_store_stays_enrolled(where: str) -> None:
    with closing(open_store(where)) as store:
        add_tokens_to_store(store, [CLIENT], [GATEWAY])
        assert store.revoke_token_digests(map(token_digest, [CLIENT, GATEWAY, "nobody-has-this-1"])) == 2
        assert store.revoke_token_digests([token_digest(CLIENT)]) == 0
        add_tokens_to_store(store, [CLIENT], [GATEWAY])  # as a service that is started with the old files again
        assert store.unrevoked_client_tokens_among([token_digest(CLIENT)]) == set()
        assert (store.read_enrolment().is_needed, store.read_enrolment().gateways) == (True, {})


def test_a_token_that_two_commands_add_at_once_is_in_one_list(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks for shared tokens when both have inserted theirs, unless the second had to wait for the first."""
    refuse, both = Store._refuse_client_tokens_shared_with_gateways, threading.Barrier(2)

    def refuse_when_both_are_there(store: Store, database: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        refuse(store, database)

    def outcome_of_adding(*lists: list[str]) -> bool:
        with closing(open_store(where)) as store, suppress(DiscreetError):
            return add_tokens_to_store(store, *lists) == 1
        return False

    open_store(where).close()
    monkeypatch.setattr(Store, "_refuse_client_tokens_shared_with_gateways", refuse_when_both_are_there)
    lists: list[tuple[list[str], list[str]]] = [([CLIENT], []), ([], [CLIENT])]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda each: outcome_of_adding(*each), lists)) == [False, True]


@pytest.mark.parametrize("revoked", [False, True])
def test_a_gateway_whose_token_is_revoked_while_its_body_arrives_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revoked: bool
) -> None:
    monkeypatch.setattr(_catalogue, "GATEWAYS_SECONDS", -1.0)
    agreement, told = agreed(tmp_path), []

    async def answer_slow_request() -> None:
        async def receive() -> Message:
            if revoked:
                store.revoke_token_digests([token_digest(GATEWAY)])
            return {"type": "http.request", "body": json.dumps(one(agreement, "late", 0)).encode(), "more_body": False}

        async def send(message: Message) -> None:
            told.append(message)

        headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {GATEWAY}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/samples", "query_string": b"", "headers": headers}
        await service(store, gateways=[GATEWAY])(scope, receive, send)

    with closing(open_store(tmp_path / "samples.db")) as store:
        store.add(agreement)
        asyncio.run(answer_slow_request())
        assert told[0]["status"] == (403 if revoked else 200)
        assert store.outcome_counts(agreement.id, 1).sum() == (not revoked)


def test_a_gateway_whose_token_is_replaced_stays_the_same_gateway(where: str) -> None:
    with closing(open_store(where)) as store:
        add_tokens_to_store(store, [CLIENT], [GATEWAY, "gateway-token-002"])
        before = store.read_enrolment().gateways
        assert len(set(before.values())) == 2
        old, new = token_digest(GATEWAY), token_digest("gateway-token-new")
        store.replace_gateway_tokens([(old, new)])
        after = store.read_enrolment().gateways
        assert after == {new: before[old], **{key: name for key, name in before.items() if key != old}}
        for pair, says in (
            ((old, token_digest("gateway-token-9")), "token 1 is not one of a gateway"),
            ((token_digest(CLIENT), token_digest("gateway-token-9")), "token 1 is not one of a gateway"),
            ((new, token_digest("gateway-token-002")), "is in the store already"),
            ((new, token_digest(CLIENT)), "share 1 token"),
        ):
            with pytest.raises(DiscreetError, match=says):
                store.replace_gateway_tokens([pair])
        assert store.read_enrolment().gateways == after


def test_a_token_in_both_lists_is_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    """Whoever was handed it as a client could stuff the ballot as a gateway."""
    agreed(tmp_path)
    tokens = str(tmp_path / "tokens.txt")
    write_fresh_token_file(tokens, 2)
    where = [str(tmp_path / "agreement.json"), "--port", "0", "--store", str(tmp_path / "samples.db")]
    said = refusal("collect", *where, "--tokens", tokens, "--gateways", tokens)
    assert "tokens of clients and of gateways share 2 tokens" in said
    assert not (tmp_path / "samples.db").exists()


def test_a_service_takes_samples_of_those_who_were_enrolled(tmp_path: Path, run: Run) -> None:
    agreement = agreed(tmp_path)
    for name in ("tokens.txt", "gateways.txt"):
        assert run("enrol", "2", "-o", str(tmp_path / name), "--json").exit_code == 0
    first, second = read_tokens(tmp_path / "tokens.txt")
    gateway, _ = read_tokens(tmp_path / "gateways.txt")
    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt", "--gateways", "gateways.txt") as collector:
        assert collector.get("/collection").json["enrolment"] is True
        assert collector.send(one(agreement, first, 0)).status == 200
        assert collector.send(one(agreement, first, 0)).json["again"] == 1
        assert collector.send(one(agreement, first, 0, key="other")).status == 409
        stranger = collector.send(one(agreement, "somebody", 0))
        assert (stranger.status, "somebody" in stranger.json["error"]) == (403, False)
        rows = [{"client": name, "key": "k", "sample": 1} for name in (second, "somebody")]
        batch = {"agreement": agreement.id, "round": 1, "samples": rows}
        assert collector.send(batch).json["error"].startswith("samples[1].client ")
        assert collector.get("/estimate").json["samples"] == 1
        assert collector.send(batch, Authorization=f"Bearer {first}").status == 401
        assert collector.send(batch, Authorization=f"Bearer {gateway}").json["counted"] == 2
        assert collector.said == ""


def test_the_command_makes_tokens_and_never_prints_them(tmp_path: Path, run: Run, refusal: Callable[..., str]) -> None:
    path = tmp_path / "tokens.txt"
    shown = run("enrol", "3", "-o", str(path)).stdout
    assert not any(token in shown for token in read_tokens(path))
    refusal("enrol", "3", "-o", str(path))
    refusal("enrol", "0", "-o", str(tmp_path / "none.txt"))


@pytest.mark.slow
def test_enrolment_is_the_store_s_and_not_a_process_s(tmp_path: Path, run: Run) -> None:
    """A restart without the option keeps it; with several workers a token is added and revoked for all of them."""
    agreement, store = agreed(tmp_path), str(tmp_path / "samples.db")
    for name in ("tokens.txt", "more.txt"):
        write_fresh_token_file(tmp_path / name, 2)
    first, second = read_tokens(tmp_path / "tokens.txt")
    late, _ = read_tokens(tmp_path / "more.txt")
    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt") as collector:
        assert collector.send(one(agreement, first, 0)).status == 200
        assert collector.stop() == 0
    with running(tmp_path, "--workers", "2") as collector:
        assert collector.get("/collection").json["enrolment"] is True
        statuses = [collector.send(one(agreement, f"stranger-{number}", 0)).status for number in range(20)]
        assert set(statuses) == {403}
        assert collector.send(one(agreement, late, 0)).status == 403
        added = run("enrol", "--add", str(tmp_path / "more.txt"), "--store", store, "--json")
        assert added.exit_code == 0, added.output
        assert [collector.send(one(agreement, late, 0)).json["counted"] for _ in range(6)] == [1, 0, 0, 0, 0, 0]
        (tmp_path / "gone.txt").write_text(f"{second}\n")
        os.chmod(tmp_path / "gone.txt", 0o600)
        assert run("enrol", "--revoke", str(tmp_path / "gone.txt"), "--store", store).exit_code == 0
        assert {collector.send(one(agreement, second, 0)).status for _ in range(20)} == {403}
        assert collector.stop() == 0
    with running(tmp_path, "--tokens", "tokens.txt") as collector:  # the old file holds the token that was revoked
        assert collector.send(one(agreement, second, 0)).status == 403
        assert collector.get("/estimate").json["samples"] == 2


@pytest.mark.slow
def test_an_open_collection_is_closed_while_it_is_served(tmp_path: Path, run: Run) -> None:
    agreement = agreed(tmp_path)
    write_fresh_token_file(tmp_path / "tokens.txt", 1)
    (token,) = read_tokens(tmp_path / "tokens.txt")
    with running(tmp_path, "agreement.json") as collector:
        assert collector.send(one(agreement, "anybody", 0)).status == 200
        change = ("--add", str(tmp_path / "tokens.txt"), "--store", str(tmp_path / "samples.db"))
        assert run("enrol", *change).exit_code == 0
        until(lambda: collector.get("/collection").json["enrolment"] is True, "it stays open")
        assert collector.send(one(agreement, "anybody else", 0)).status in (403, 422)
        assert collector.send(one(agreement, "anybody-else", 0)).status == 403
        assert collector.send(one(agreement, token, 0)).status == 200


@pytest.mark.slow
def test_names_of_gateways_and_tokens_do_not_collide(tmp_path: Path, run: Run) -> None:
    """ "x" by one gateway, "x" by another and a token "x" are three; a gateway whose token is replaced names the same clients."""
    agreement = agreed(tmp_path)
    for name, many in (("tokens.txt", 1), ("gateways.txt", 2), ("new.txt", 1)):
        write_fresh_token_file(tmp_path / name, many)
    (token,) = read_tokens(tmp_path / "tokens.txt")
    first, second = read_tokens(tmp_path / "gateways.txt")
    (renewed,) = read_tokens(tmp_path / "new.txt")
    (tmp_path / "old.txt").write_text(f"{first}\n")
    os.chmod(tmp_path / "old.txt", 0o600)

    def sent(collector: Collector, gateway: str | None = None, key: str = "key") -> int:
        headers = {} if gateway is None else {"Authorization": f"Bearer {gateway}"}
        answer = collector.send(one(agreement, token, 0, key=key), **headers)
        return answer.status if answer.status != 200 else int(answer.json["counted"])

    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt", "--gateways", "gateways.txt") as collector:
        assert [sent(collector), sent(collector, first), sent(collector, second)] == [1, 1, 1]
        assert [sent(collector), sent(collector, first), sent(collector, second)] == [0, 0, 0]
        change = ("--replace-gateways", str(tmp_path / "old.txt"), str(tmp_path / "new.txt"))
        assert run("enrol", *change, "--store", str(tmp_path / "samples.db")).exit_code == 0
        until(lambda: sent(collector, first) == 401, "the old token stays good")
        assert [sent(collector, first), sent(collector, renewed), sent(collector, renewed, "other")] == [401, 0, 409]
        assert collector.get("/estimate").json["samples"] == 3


def test_the_command_says_what_is_missing(tmp_path: Path, refusal: Callable[..., str], run: Run) -> None:
    agreement, store, path = agreed(tmp_path), str(tmp_path / "samples.db"), str(tmp_path / "tokens.txt")
    with closing(open_store(store)) as opened:
        opened.add(agreement)
    write_fresh_token_file(path, 3)
    write_fresh_token_file(tmp_path / "two.txt", 2)
    assert "say how many" in refusal("enrol")
    assert "say how many" in refusal("enrol", "3")
    assert "--store names the store" in refusal("enrol", "--add", path)
    assert "--store names the store" in refusal("enrol", "3", "-o", str(tmp_path / "new.txt"), "--store", store)
    assert "there is no store" in refusal("enrol", "--add", path, "--store", str(tmp_path / "none.db"))
    assert "3 and 2 tokens" in refusal("enrol", "--replace-gateways", path, str(tmp_path / "two.txt"), "--store", store)
    assert "3 of the 3 tokens in" in refusal("enrol", "--revoke", path, "--store", store)
    shown = run("enrol", "--add", path, "--store", store).stdout
    assert shown == "added 3 tokens\n"
