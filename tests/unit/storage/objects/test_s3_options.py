"""How S3 is reached: options, the environment, and which of them wins."""

from __future__ import annotations

import os

import pytest

from omnigraph.errors import StorageError, StorageRefusedError
from omnigraph.storage import open_objects
from omnigraph.storage.objects.s3_options import resolve_s3_options
from omnigraph.storage.tables.lance_tables import Tables
from people import SCHEMA
from stores import S3Server

HERE = "http://127.0.0.1:9000"
ELSEWHERE = "https://127.0.0.1:1"


def test_without_options_and_variables_the_clients_are_left_alone() -> None:
    assert resolve_s3_options({}, {"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "k"}) == {}


@pytest.mark.parametrize(
    "name", ["aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint", "AWS_ENDPOINT"]
)
def test_an_endpoint_among_the_options_wins_over_every_variable(name: str) -> None:
    environment = {"AWS_ENDPOINT_URL_S3": ELSEWHERE, "AWS_ENDPOINT": ELSEWHERE}
    options = {name: HERE, "allow_http": "true"}
    assert resolve_s3_options(options, environment) == {
        "aws_endpoint_url_s3": HERE,
        "allow_http": "true",
    }


def test_the_endpoint_of_s3_wins_over_that_of_all_services() -> None:
    environment = {"AWS_ENDPOINT_URL": ELSEWHERE, "AWS_ENDPOINT_URL_S3": "https://s3.example"}
    assert resolve_s3_options({}, environment) == {"aws_endpoint_url_s3": "https://s3.example"}
    assert resolve_s3_options({}, {"AWS_ENDPOINT_URL": ELSEWHERE}) == {
        "aws_endpoint_url_s3": ELSEWHERE
    }


def test_the_environment_has_options_of_the_connection_too() -> None:
    environment = {"AWS_ALLOW_HTTP": "1", "AWS_TIMEOUT": "9s", "AWS_PROXY_URL": ""}
    assert resolve_s3_options({}, environment) == {"allow_http": "1", "timeout": "9s"}
    assert resolve_s3_options({"aws_timeout": "3s"}, environment)["timeout"] == "3s"


@pytest.mark.parametrize(
    ("options", "environment", "is_settled"),
    [
        ({}, {"AWS_S3_FORCE_PATH_STYLE": "true"}, True),
        ({}, {"AWS_S3_FORCE_PATH_STYLE": "false"}, False),
        ({"aws_s3_force_path_style": "1"}, {}, True),
        ({"aws_s3_force_path_style": "0"}, {"AWS_S3_FORCE_PATH_STYLE": "true"}, False),
    ],
)
def test_paths_may_be_demanded_instead_of_hosts(
    options: dict[str, str], environment: dict[str, str], is_settled: bool
) -> None:
    expected = {"aws_virtual_hosted_style_request": "false"} if is_settled else {}
    assert resolve_s3_options(options, environment) == expected


def test_hosts_among_the_options_win_over_paths_in_the_environment() -> None:
    options = {"aws_virtual_hosted_style_request": "true"}
    assert resolve_s3_options(options, {"AWS_S3_FORCE_PATH_STYLE": "true"}) == options


@pytest.mark.parametrize("allowed", [{}, {"allow_http": "false"}, {"allow_http": ""}])
def test_an_endpoint_without_encryption_has_to_be_allowed(allowed: dict[str, str]) -> None:
    with pytest.raises(StorageRefusedError, match="not encrypted") as caught:
        resolve_s3_options({"endpoint": HERE, **allowed}, {})
    assert "AWS_ALLOW_HTTP=true" in str(caught.value.hint)


def test_who_has_no_credentials_is_told_where_they_come_from(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    options = {name: value for name, value in s3.options.items() if "key" not in name}
    options["aws_metadata_endpoint"] = s3.endpoint
    with pytest.raises(StorageError) as caught:
        open_objects(f"s3://{s3.new_bucket()}/graph", options=options).get("a")
    assert caught.value.hint == "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def test_objects_and_tables_are_reached_by_the_environment_alone(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both clients would take hosts from this variable if the paths were not demanded.
    monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    uri = f"s3://{s3.new_bucket()}/graphs/one"
    assert open_objects(uri).put_new("a/b", b"1")
    pin = Tables(uri).create("t/Person.lance", SCHEMA)
    assert Tables(uri).open(pin).count() == 0
    assert {entry.path.partition("/")[0] for entry in open_objects(uri).list("")} == {"a", "t"}


def test_objects_and_tables_are_reached_by_options_in_spite_of_the_environment(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, ELSEWHERE)
    uri = f"s3://{s3.new_bucket()}/graphs/one"
    assert open_objects(uri, options=s3.options).put_new("a/b", b"1")
    assert Tables(uri, options=s3.options).create("t/Person.lance", SCHEMA).rows == 0
