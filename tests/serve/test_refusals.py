"""What the service refuses: strangers, other sites, too much, nonsense."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from ndsvrp.errors import NdsError
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.service import QueueFullError
from ndsvrp.serve.store import Store
from ndsvrp.serve.uploads import safe_name
from serve.running import HEADERS, open_client

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"host": "0.0.0.0"}, "--host 0.0.0.0: any address but localhost needs a token"),
        ({"host": "example.org"}, "--host example.org: any address but localhost needs a token"),
        ({"token": "short"}, "--token: needs at least 16 characters"),
        ({"token": "with a space in it"}, "--token: needs at least 16 characters, ASCII without spaces"),
        ({"port": 70_000}, "port must be between 0 and 65535, got 70000"),
        ({"max_seconds": 0.0}, "max_seconds must be between 0.01 and 10000000, got 0.0"),
        ({"device": "tpu"}, "device must be one of auto, cpu, cuda, got 'tpu'"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(NdsError) as refused:
        ServeConfig(**settings)
    assert str(refused.value).startswith(message)


def test_addresses_of_this_machine_need_no_token():
    for host in ("localhost", "127.0.0.1", "127.8.9.1", "::1"):
        assert ServeConfig(host=host).host == host
    assert ServeConfig(host="0.0.0.0", token=TOKEN).token == TOKEN


def test_the_token_guards_everything_but_the_page(tmp_path):
    with open_client(tmp_path / "jobs.sqlite", host="0.0.0.0", token=TOKEN) as client:
        for path in ("/api/jobs", "/api/limits", "/api/openapi.json", "/api/jobs/x/result"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert client.get(path, headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
            assert client.get(path, headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
        assert client.post("/api/jobs", content=b"x").status_code == 401
        assert client.get("/api/jobs", headers={"authorization": f"Bearer {TOKEN}"}).json() == []
        assert client.get("/").status_code == 200
        assert client.get("/page/app.js").status_code == 200


def test_other_sites_are_refused(client):
    """A page of another site can address localhost from a browser: by its own name (rebinding), or across origins."""
    stranger = TestClient(client.app, headers={"host": "evil.example"})
    assert (stranger.get("/api/jobs").status_code, stranger.get("/").status_code) == (403, 403)
    answer = client.post("/api/jobs", content=b"x", headers={"origin": "https://evil.example"})
    assert answer.json() == {"error": "requests from pages of another site are refused"}
    own = client.get("/api/jobs", headers={"origin": f"http://{HEADERS['host']}"})
    assert own.status_code == 200
    assert own.headers["content-security-policy"].startswith("default-src 'self';")


@pytest.mark.parametrize(
    "options, status, error",
    [
        ({"time": 601}, 413, "time: 601 s is above the limit of 600 s"),
        ({"time": "nan"}, 400, "time: Input should be a finite number"),
        ({"time": -1}, 400, "time: Input should be greater than 0"),
        ({"seed": 2**63}, 400, "seed: Input should be less than 9223372036854775808"),
        ({"seed": "x"}, 400, "seed: Input should be a valid integer, unable to parse string as an integer"),
        ({"solver": "magic"}, 400, "unknown solver 'magic': one of auto, hybrid, nds, sisr"),
        ({"ruin": "/etc/passwd"}, 400, "unknown ruin '/etc/passwd': one of string, related, random, policy"),
        ({"round": "up"}, 400, "unknown metric 'up' (known: auto, none, round, trunc, dimacs, exact)"),
        (
            {"model": "/etc/passwd"},
            400,
            "unknown option 'model' (known: name, round, index, column, ignore_field, capacity, vehicles, "
            "max_distance, max_duration, vehicle_cost, time, iterations, patience, target, seed, solver, ruin, key)",
        ),
        (
            {"distance": "matrix.csv"},
            400,
            "distance: a job is one file, with its matrix in it; "
            "'nds convert stops.csv stops.json --distance FILE' writes one file with both",
        ),
        ({"index": 1}, 400, "a.vrp: no instance 1, the file holds one (0)"),
        ({"name": ""}, 400, "name: String should have at least 1 character"),
        ({"time": ["1", "2"]}, 400, "time: given twice"),
    ],
)
def test_options(client, cvrp, options, status, error):
    answer = client.submit(cvrp, **{"name": "a.vrp", **options})
    assert (answer.status_code, answer.json()) == (status, {"error": error})


@pytest.mark.parametrize(
    "name, body, error",
    [
        ("a.vrp", b"", "a.vrp: is empty"),
        ("a.vrp", b"\xff\xfeN\x00", "a.vrp: is UTF-16 text: save it as UTF-8"),
        ("a.vrp", b"NAME : a\nTYPE : CVRP\nDIMENSION : -3\n", "a.vrp:3: DIMENSION: "),
        ("../../etc/a.npz", b"PK\x03\x04", "a.npz: "),
        ("<script>.vrp", b"\0", "_script_.vrp: is not a text file"),
    ],
)
def test_instances(client, name, body, error):
    answer = client.submit(body, name=name)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)
    assert "/tmp" not in answer.json()["error"]


def test_a_form_is_no_instance(client, cvrp):
    answer = client.post("/api/jobs?name=a.vrp", files={"file": cvrp})
    text = "the body must be the file itself, not a form (curl --data-binary @FILE)"
    assert (answer.status_code, answer.json()) == (400, {"error": text})


def test_names_of_files():
    assert safe_name("C:\\data\\a b.vrp") == "a_b.vrp"
    assert safe_name("../..") == "instance"
    assert safe_name("x" * 300 + ".npz") == "x" * 80 + ".npz"
    assert safe_name(".vrp") == "vrp"


def test_size(tmp_path, cvrp):
    with open_client(tmp_path / "jobs.sqlite", max_mib=0.01, max_customers=50) as client:
        answer = client.submit(cvrp, name="a.vrp")
        assert answer.json() == {"error": "105 customers are above the limit of 50"}
        answer = client.submit(b"x" * 20_000, name="a.vrp")
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
        chunks = (b"x" * 1_000 for _ in range(20))  # without a Content-Length
        answer = client.post("/api/jobs", params={"name": "a.vrp"}, content=chunks)
        assert (answer.status_code, answer.json()) == (413, {"error": "the body is larger than 0.01 MiB"})
        assert client.get("/api/jobs").json() == []


def test_bodies_share_a_memory(tmp_path, cvrp):
    """Sixteen of the largest; what is being received counts, what was stored or refused does not."""
    with open_client(tmp_path / "jobs.sqlite", max_mib=0.01) as client:
        service, most = client.app.state.service, int(0.01 * 2**20)
        with service.holding() as hold:
            hold(16 * most - len(cvrp))
            assert client.submit(cvrp, name="a.vrp").status_code == 202
            hold(1)
            answer = client.submit(cvrp, name="b.vrp")
            assert (answer.status_code, answer.json()) == (
                429, {"error": "too many instances are being received, try again later"},
            )  # fmt: skip
        assert client.submit(cvrp, name="b.vrp").status_code == 202
        with service.holding() as hold, pytest.raises(QueueFullError):
            hold(16 * most + 1)


def test_unknown_addresses(client):
    for method, path, status in (
        ("GET", "/api/jobs/none", 404), ("POST", "/api/jobs/none/cancel", 404), ("DELETE", "/api/jobs/none", 404),
        ("GET", "/api/jobs/none/events", 404), ("GET", "/nothing", 404), ("PUT", "/api/jobs", 405),
        ("GET", "/page/../api.py", 404), ("GET", "/page/%2e%2e/api.py", 404), ("GET", "/docs", 404),
    ):  # fmt: skip
        answer = client.request(method, path)
        assert answer.status_code == status, path
        assert set(answer.json()) == {"error"}


def test_the_database_is_used_by_one_service(tmp_path):
    store = Store(tmp_path / "jobs.sqlite")
    with pytest.raises(NdsError, match=r"jobs\.sqlite: is in use by another service"):
        Store(tmp_path / "jobs.sqlite")
    store.close()
    Store(tmp_path / "jobs.sqlite").close()
    (tmp_path / "text.sqlite").write_text("this is no database, whatever its name says" * 100)
    with pytest.raises(NdsError, match="cannot be used as a database of jobs"):
        Store(tmp_path / "text.sqlite")
