"""What a cancelled call of a server has done."""

from __future__ import annotations

import socket
import threading

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.client.remote_graph import open_remote

HIRE = "query hire($name: String) { insert Person { name: $name } }"


def test_a_write_that_is_cancelled_after_it_was_sent_may_have_happened() -> None:
    cancellation = omnigraph.Cancellation()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def work() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                cancellation.cancel()
                # Until the client has cut the connection.
                while connection.recv(65_536):
                    pass

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/graphs/g"
        with open_remote(url) as graph:
            with pytest.raises(errors.InDoubtError, match="a write was cancelled"):
                graph.branch().mutate(HIRE, params={"name": "x"}, cancel=cancellation)
            thread.join(10)
            with pytest.raises(errors.QueryCancelledError):
                graph.branch().mutate(HIRE, params={"name": "x"}, cancel=cancellation)
