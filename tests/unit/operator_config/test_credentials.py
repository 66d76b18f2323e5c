"""Tokens: where they are kept, and which of them a request carries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import PasswordDeleteError

from omnigraph import errors
from omnigraph.operator_config.credentials import (
    CredentialsFile,
    find_token,
    match_server,
    name_token_variable,
)

SECRET = "s3cr3t"  # noqa: S105 — of no server


class MemoryKeyring(KeyringBackend):
    """A keyring of this process alone."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of the library
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError(username)


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    made = MemoryKeyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def value_of(file: CredentialsFile, server: str) -> str | None:
    found = file.find_token(server)
    return None if found is None else found.value


def test_a_token_is_kept_in_a_private_file(tmp_path: Path) -> None:
    file = CredentialsFile(tmp_path / "new" / "home")
    file.store_token("prod", SECRET)
    assert file.path.read_text() == f"[prod]\ntoken = {SECRET}\n"
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o077 == 0
    found = file.find_token("prod")
    assert found is not None
    assert SECRET not in repr(found)
    assert found.origin == f"[prod] of {file.path}"


def test_other_sections_are_kept_as_they_are(tmp_path: Path) -> None:
    file = CredentialsFile(tmp_path)
    before, after = "# mine\n[ a ]\n\ttoken='x=y'\n", '\n[z]\nother = 1\ntoken = "q"\n# end'
    file.path.write_text(f"{before}[prod]\ntoken = old\n# of prod\n{after}")
    file.path.chmod(0o600)
    file.store_token("prod", SECRET)
    assert file.path.read_text() == f"{before}[prod]\ntoken = {SECRET}\n{after[1:]}"
    assert [value_of(file, name) for name in ("a", "prod", "z")] == ["x=y", SECRET, "q"]
    file.remove_token("prod")
    assert file.path.read_text() == f"{before}{after[1:]}"
    file.store_token("prod", SECRET)
    assert file.path.read_text() == f"{before}{after[1:]}\n[prod]\ntoken = {SECRET}\n"


def test_an_empty_value_is_not_a_token(tmp_path: Path) -> None:
    file = CredentialsFile(tmp_path)
    file.path.write_text("[a]\ntoken =\n[b]\n# token = x\n[c]\ntoken = ''\n")
    file.path.chmod(0o600)
    assert [value_of(file, name) for name in "abc"] == [None, None, None]


def test_removing_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    file = CredentialsFile(tmp_path)
    file.remove_token("prod")
    assert not file.path.exists()
    file.store_token("prod", SECRET)
    for _ in range(2):
        file.remove_token("prod")
        assert file.path.read_text() == ""


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = CredentialsFile(tmp_path)
    file.store_token("prod", SECRET)
    file.path.chmod(mode)
    acts: list[Callable[[], object]] = [
        lambda: file.find_token("prod"),
        lambda: file.store_token("prod", "other"),
        lambda: file.remove_token("prod"),
    ]
    for act in acts:
        with pytest.raises(errors.CredentialsError, match="can be read by others") as refused:
            act()
        assert "chmod 600" in str(refused.value.hint)
        assert SECRET not in refused.value.message
    assert SECRET in file.path.read_text()


@pytest.mark.parametrize("token", ["", "two words", "a\nb", "a\x00", "ü"])
def test_a_token_that_no_request_can_carry_is_refused(tmp_path: Path, token: str) -> None:
    file = CredentialsFile(tmp_path)
    with pytest.raises(errors.CredentialsError) as refused:
        file.store_token("prod", token)
    assert not token or token not in refused.value.message
    assert not file.path.exists()


@pytest.mark.parametrize("token", ["two words", "s3cr3t-ü"])
def test_a_token_that_was_written_by_hand_is_refused_where_it_is_used(
    tmp_path: Path, token: str
) -> None:
    file = CredentialsFile(tmp_path)
    file.path.write_text(f"[prod]\ntoken = {token}\n")
    file.path.chmod(0o600)
    variable = {"OMNIGRAPH_TOKEN_PROD": token}
    for environment, origin in (({}, r"\[prod\] of"), (variable, r"\$OMNIGRAPH_TOKEN_PROD")):
        with pytest.raises(errors.CredentialsError, match=origin) as refused:
            find_token(
                "http://h/", servers={"prod": "http://h"}, environment=environment, home=tmp_path
            )
        assert token not in refused.value.message


def test_white_space_around_a_token_is_not_part_of_it(tmp_path: Path) -> None:
    environment = {"OMNIGRAPH_BEARER_TOKEN": f"{SECRET}\n"}
    found = find_token("http://h/", servers={}, environment=environment, home=tmp_path)
    assert found is not None
    assert found.value == SECRET


@pytest.mark.parametrize("name", ["", "a]b", "a\nb", "-a", "a b"])
def test_a_name_that_no_section_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(errors.CredentialsError, match="cannot be the name"):
        CredentialsFile(tmp_path).store_token(name, SECRET)


def test_two_that_log_in_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(16)]
    threads = [
        threading.Thread(target=CredentialsFile(tmp_path).store_token, args=(name, f"t-{name}"))
        for name in names
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    file = CredentialsFile(tmp_path)
    assert [value_of(file, name) for name in names] == [f"t-{name}" for name in names]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["credentials", "credentials.lock"]


def test_a_keyring_holds_the_token_and_the_section_says_so(
    tmp_path: Path, ring: MemoryKeyring
) -> None:
    file = CredentialsFile(tmp_path)
    file.store_token("prod", SECRET, in_keyring=True)
    assert file.path.read_text() == "[prod]\nkeyring = yes\n"
    assert value_of(file, "prod") == SECRET
    file.store_token("prod", "plain")
    assert (value_of(file, "prod"), ring.kept) == ("plain", {})
    file.store_token("prod", SECRET, in_keyring=True)
    file.remove_token("prod")
    assert (value_of(file, "prod"), ring.kept) == (None, {})


def test_without_a_keyring_nothing_is_stored_anywhere(tmp_path: Path) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]  # of the library
    try:
        file = CredentialsFile(tmp_path)
        with pytest.raises(errors.CredentialsError, match="keyring") as refused:
            file.store_token("prod", SECRET, in_keyring=True)
        assert SECRET not in refused.value.message
        assert not file.path.exists()
    finally:
        keyring.set_keyring(before)


def test_the_chain_is_variable_then_section_then_bearer(tmp_path: Path) -> None:
    servers = {"intel-dev": "http://h:80"}
    environment = {"OMNIGRAPH_BEARER_TOKEN": "bearer"}

    def found(url: str = "http://h:80/graphs/g") -> tuple[str, str] | None:
        token = find_token(url, servers=servers, environment=environment, home=tmp_path)
        return None if token is None else (token.value, token.origin)

    assert found() == ("bearer", "$OMNIGRAPH_BEARER_TOKEN")
    CredentialsFile(tmp_path).store_token("intel-dev", "stored")
    assert found() == ("stored", f"[intel-dev] of {tmp_path}/credentials")
    environment |= {"OMNIGRAPH_TOKEN_INTEL_DEV": "variable"}
    assert found() == ("variable", "$OMNIGRAPH_TOKEN_INTEL_DEV")
    assert found("http://other/") == ("bearer", "$OMNIGRAPH_BEARER_TOKEN")
    del environment["OMNIGRAPH_BEARER_TOKEN"]
    assert found("http://other/") is None
    assert name_token_variable("intel-dev") == "OMNIGRAPH_TOKEN_INTEL_DEV"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:80/graphs/g", "root"),
        ("HTTP://H/graphs/g", "root"),
        ("http://h", "root"),
        ("http://h:80/team", "team"),
        ("http://h:80/team/x?y=1", "team"),
        ("http://h:80/teams", "root"),
        ("http://h:80/team/../x", None),
        ("http://h:80/team/%2e%2e/x", None),
        ("http://h:80-evil/x", None),
        ("http://h:80@evil/x", None),
        ("http://h:8080/x", None),
        ("https://h:80/x", None),
        ("http://hh/x", None),
        ("http://evil/http://h:80/", None),
    ],
)
def test_a_request_belongs_to_the_longest_server_at_a_boundary(
    url: str, expected: str | None
) -> None:
    servers = {"team": "http://h:80/team/", "root": "http://h:80"}
    assert match_server(url, servers) == expected
