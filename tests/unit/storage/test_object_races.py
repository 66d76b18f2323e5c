from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from omnigraph.storage import open_objects
from stores import S3Server

TURNS = 40
PROCESSES = 4

# Waits at a common line before each turn, so that the processes really meet.
RACER = """
import json, sys
from omnigraph.storage import open_objects
uri, options, name, turns = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
objects = open_objects(uri, options=options)
print("ready", flush=True)
won = []
for turn in range(turns):
    sys.stdin.readline()
    if objects.put_new(f"race/{turn:03}", name.encode()):
        won.append(turn)
    print("done", flush=True)
print(json.dumps(won), flush=True)
"""


def test_of_racing_processes_exactly_one_creates_a_file(tmp_path: Path) -> None:
    check_race(str(tmp_path / "graph"), {})


@pytest.mark.slow
def test_of_racing_processes_exactly_one_creates_an_object_in_s3(s3: S3Server) -> None:
    check_race(f"s3://{s3.new_bucket()}/graph", s3.options)


def check_race(uri: str, options: Mapping[str, str]) -> None:
    racers = [start_racer(uri, options, str(number)) for number in range(PROCESSES)]
    try:
        assert [read(racer) for racer in racers] == ["ready"] * PROCESSES
        for _ in range(TURNS):
            for racer in racers:
                write(racer)
            assert [read(racer) for racer in racers] == ["done"] * PROCESSES
        won = [json.loads(read(racer)) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert sorted(turn for turns in won for turn in turns) == list(range(TURNS))
    objects = open_objects(uri, options=options)
    for number, turns in enumerate(won):
        assert all(objects.get(f"race/{turn:03}") == str(number).encode() for turn in turns)


def start_racer(uri: str, options: Mapping[str, str], name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RACER, uri, json.dumps(dict(options)), name, str(TURNS)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read(racer: subprocess.Popen[str]) -> str:
    assert racer.stdout is not None
    return racer.stdout.readline().strip()


def write(racer: subprocess.Popen[str]) -> None:
    assert racer.stdin is not None
    racer.stdin.write("go\n")
    racer.stdin.flush()
