"""The service over HTTP: routes, limits, clients that are slow or hostile, and its end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from deccs.serving.answering import Question, Served
from deccs.serving.limits import Limits
from deccs.serving.npy import npy_of
from deccs_paper.malformed import Sample, bad_request, is_survived, send_all
from tests.helpers.command_line import deccs
from tests.serving.conftest import running

AS_JSON = {"Content-Type": "application/json"}


def ask(port, method="GET", path="/health", body=None, headers=None):
    """(status, headers, body) of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def predict(port, rows, query="", **headers):
    status, _, body = ask(port, "POST", f"/v1/predict{query}", json.dumps(rows), AS_JSON | headers)
    return status, json.loads(body)


def raw(port, *parts, pause=0.0):
    """What a service sends to a client that writes these bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        received = b""
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
            while block := client.recv(2**16):
                received += block
        except ConnectionError:  # it was closed with bytes of ours unread
            pass
        return received


def test_the_pages_and_their_headers(port, named):
    for path in ("/health", "/ready", "/v1/model", "/openapi.json"):
        status, headers, body = ask(port, path=path)
        assert status == 200
        assert headers["content-type"] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        assert json.loads(body)
    facts = json.loads(ask(port, path="/v1/model")[2])
    assert [column["name"] for column in facts["columns"]] == list(named.reader.names)
    assert facts["limits"]["rows"] == 1_000 and facts["method"] == "DECCS"
    assert ask(port, "HEAD")[0] == 200


def test_predict_over_http(port, named, blobs):
    X = blobs.X[:30]
    labels = named.model.predict(X).tolist()
    assert predict(port, X.tolist())[1]["labels"] == labels
    assert predict(port, X.tolist(), "?fields=labels") == (200, {"labels": labels})
    status, headers, body = ask(
        port,
        "POST",
        "/v1/predict",
        npy_of(X),
        {"Content-Type": "application/x-npy", "Accept": "application/x-npy"},
    )
    assert (status, headers["content-type"]) == (200, "application/x-npy")
    assert body[-8:] == int(labels[-1]).to_bytes(8, "little")


def test_the_openapi_document_says_what_the_service_does(port, table):
    with running(table) as (other, _):
        for number in (port, other):
            document = json.loads(ask(number, path="/openapi.json")[2])
            assert document["openapi"].startswith("3.1")
            for path, methods in document["paths"].items():
                for method in methods:
                    status, _, _ = ask(number, method.upper(), path)
                    assert status not in (404, 405)
            schemas = document["components"]["schemas"]
            text = json.dumps(document)
            assert all(f'"#/components/schemas/{name}"' in text for name in schemas)
            facts = json.loads(ask(number, path="/v1/model")[2])
            assert schemas["Row"]["required"] == [column["name"] for column in facts["columns"]]
            (row,) = [[None] * len(facts["columns"])]
            answer = predict(number, {"row": row})[1]
            assert {*answer} - {"notes"} == {*schemas["Answer"]["properties"]} - {"notes"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "words"),
    [
        ("GET", "/v2", {}, 404, "/v1/predict"),
        ("GET", "/v1/predict", {}, 405, "POST"),
        ("DELETE", "/health", {}, 405, "GET"),
        ("POST", "/v1/predict", {"Content-Type": "text/plain"}, 415, "application/json"),
        ("POST", "/v1/predict", {}, 415, "application/json"),
        ("POST", "/v1/predict", AS_JSON | {"Content-Encoding": "gzip"}, 415, "Compressed"),
        ("POST", "/v1/predict", {"Content-Type": "application/json;charset=utf-16"}, 415, "UTF-8"),
        ("POST", "/v1/predict?field=labels", AS_JSON, 400, "'field'"),
        ("POST", "/v1/predict?fields=a%0Ab", AS_JSON, 422, r"'a\\nb'"),
        ("POST", "/v1/predict", AS_JSON | {"Origin": "http://evil.example"}, 403, "other sites"),
        ("GET", "/health", {"Host": "evil.example"}, 421, "--allow-host"),
        ("GET", "/health", {"Host": ""}, 421, "--allow-host"),
        ("GET", "/%ff%00/../..", {}, 404, "/v1/predict"),
    ],
)
def test_what_is_refused(port, method, path, headers, status, words):
    got, _, body = ask(port, method, path, "[]" if method == "POST" else None, headers)
    assert got == status
    assert words in body.decode()


def test_addresses_and_known_names_are_believed(port, named):
    for host in ("127.0.0.1", "[::1]:99", "localhost:1", "LOCALHOST"):
        assert ask(port, headers={"Host": host})[0] == 200
    with running(named, more_hosts=["clusters.lan"]) as (other, _):
        assert ask(other, headers={"Host": "Clusters.lan:80"})[0] == 200
        assert ask(other, headers={"Host": "clusters.lan.evil"})[0] == 421


def test_bodies_that_are_too_large(port):
    status, headers, body = ask(port, "POST", "/v1/predict", b"[" + b" " * 100_000, AS_JSON)
    assert status == 413 and b"100,000 bytes" in body and headers["connection"] == "close"
    head = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    answer = raw(port, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 8)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")  # b"": it was sent, but reset
    answer = raw(port, head + b"Content-Length: 99999999999999999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 4")


def test_bad_http_is_refused_and_no_connection_lives_for_ever(port):
    """With one second for a request to arrive."""
    start = time.perf_counter()
    for parts in (
        [b"\x16\x03\x01 TLS?"],
        [b"GET / HTTP/9.9\r\n\r\n"],
        [b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"],
        [b"GET /health HTTP/1.1\r\nX: " + b"a" * 400_000],
        [b"GET /" + b"a" * 400_000],
        [b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 60_000],
    ):
        answer = raw(port, *parts)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), parts[0][:30]
    for parts in (
        [],
        [b"\r\n"],
        [b"GET /health HTTP/1.1\r\n"],
        [
            b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\n\r\n[["
        ],
    ):
        assert raw(port, *parts) == b""
    assert time.perf_counter() - start < 20
    assert ask(port)[0] == 200


def test_a_client_that_sends_byte_by_byte_is_cut_off(port):
    line = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    start = time.perf_counter()
    assert raw(port, *[line[at : at + 1] for at in range(len(line))], pause=0.1) == b""
    assert (
        time.perf_counter() - start < 6
    )  # all the bytes would take 4 seconds, and then be answered


def test_a_connection_serves_several_requests_also_sent_at_once(port):
    line = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = line.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert raw(port, line * 5 + last).count(b"HTTP/1.1 200") == 6


def test_too_many_connections_are_told_so(port):
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    try:
        time.sleep(0.1)
        assert raw(port).startswith(b"HTTP/1.1 503")
    finally:
        for client in clients:
            client.close()
    time.sleep(0.1)
    assert ask(port)[0] == 200


class Slow:
    """A model that takes as long as it is told to."""

    def __init__(self, model):
        self.model, self.go, self.n_rows = model, threading.Event(), []
        self.go.set()

    def __getattr__(self, name):
        return getattr(self.model, name)

    def _answers(self, source):
        self.n_rows.append(source.shape[0])
        assert self.go.wait(30)
        return self.model._answers(source)


def test_clients_that_wait_at_the_same_time_share_a_pass(named, blobs):
    slow = Slow(named.model)
    with running(Served(slow, named.preprocessing, tell=print)) as (port, _):
        slow.go.clear()
        slow.n_rows.clear()
        with ThreadPoolExecutor(12) as pool:
            replies = [pool.submit(predict, port, [row]) for row in blobs.X[:12].tolist()]
            while not slow.n_rows:
                time.sleep(0.01)
            time.sleep(0.5)
            slow.go.set()
            labels = [reply.result()[1]["labels"][0] for reply in replies]
        assert sum(slow.n_rows) == 12 and len(slow.n_rows) < 6
    assert labels == named.model.predict(blobs.X[:12]).tolist()


def test_it_answers_others_while_it_works(named, blobs):
    slow = Slow(named.model)
    limits = Limits(seconds_to_answer=1.0)
    with running(Served(slow, named.preprocessing, limits, tell=print)) as (port, _):
        slow.go.clear()
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(predict, port, blobs.X[:1].tolist())
            assert ask(port)[0] == 200
            status, answer = reply.result()
            slow.go.set()
    assert status == 503 and "within 1 seconds" in answer["error"]


def test_large_bodies_together_have_a_limit(named):
    limits = Limits(bytes_together=40_000)
    with running(Served(named.model, named.preprocessing, limits, tell=print)) as (port, _):
        assert predict(port, [[0.5] * 4] * 5_000)[0] == 503
        assert predict(port, [[0.5] * 4] * 1_000)[0] == 200
        assert predict(port, [[0.5] * 4] * 1_000)[0] == 200


def test_stop_finishes_what_runs_and_refuses_what_is_new(named, blobs):
    slow = Slow(named.model)
    with running(Served(slow, named.preprocessing, tell=print)) as (port, service):
        slow.go.clear()
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(predict, port, blobs.X[:3].tolist())
            while len(slow.n_rows) < 4:
                time.sleep(0.01)
                if slow.n_rows[-1:] == [3]:
                    break
            service.stop()
            time.sleep(0.5)
            with pytest.raises(ConnectionError):
                ask(port)
            slow.go.set()
            status, answer = reply.result()
    assert (status, answer["labels"]) == (200, named.model.predict(blobs.X[:3]).tolist())


def test_the_same_question_again_and_again_gets_the_same_bytes(named, blobs):
    question = Question(json.dumps(blobs.X[:3].tolist()).encode())
    assert len({named.replies([question])[0].body for _ in range(20)}) == 1


# The command


def test_the_command_refuses_what_cannot_be_served(tmp_path, plain_model):
    code, _, error = deccs("serve", tmp_path / "no", "--port", "0")
    assert code == 2 and "does not exist" in error
    code, _, error = deccs("serve", tmp_path, "--port", "70000")
    assert code == 2 and "--port must be from 0 to 65,535" in error
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, error = deccs("serve", tmp_path, "--port", port)
    assert code == 1 and f"port {port}" in error


def test_a_saved_model_is_served_until_sigterm(tmp_path, plain_model, blobs):
    plain_model.save(tmp_path / "model.zip")
    command = [sys.executable, "-m", "deccs", "serve", str(tmp_path / "model.zip"), "--port", "0"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=os.environ) as process:
        port = int(process.stdout.readline().rpartition(":")[2])
        labels = predict(port, blobs.X[:3].tolist())[1]["labels"]
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=30)
    assert labels == plain_model.predict(blobs.X[:3]).tolist()
    assert process.returncode == 0
    line, stopped = error.splitlines()
    assert " 127.0.0.1 POST /v1/predict 200 3 rows " in line and stopped == "Stopped."


# Edits and hostile clients


def test_an_edited_model_is_served_as_it_is(named, blobs):
    edited = named.model.merge([0, 2]).rename(1, "lonely")
    with running(Served(edited, named.preprocessing, tell=print)) as (port, _):
        answer = predict(port, blobs.X.tolist(), "?fields=labels,names,probabilities")[1]
        facts = json.loads(ask(port, path="/v1/model")[2])
    assert answer["labels"] == edited.predict(blobs.X).tolist()
    assert {*answer["labels"]} == {0, 1}
    assert answer["names"][answer["labels"].index(1)] == "lonely"
    assert [cluster["number"] for cluster in facts["clusters"]] == [0, 1]
    assert facts["edits"] == 2


def test_malformed_requests_do_no_harm(port, named, blobs):
    sample = Sample(list(named.reader.names), blobs.X)
    before = predict(port, blobs.X.tolist())
    outcomes = send_all(port, 400, seed=0, sample=sample)
    assert is_survived(outcomes), outcomes
    assert len(outcomes) == len({bad_request(0, place, sample).kind for place in range(20)})
    assert sum(count["200"] for count in outcomes.values()) < 100
    assert predict(port, blobs.X.tolist()) == before
