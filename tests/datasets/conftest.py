"""What holds for every test of data sets: nothing of this machine's is read or written."""

import pytest

from otprop.datasets import fetch, registry
from tests.datasets.server import Server


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    """An empty cache, no offline folder, no waiting; the registry is as it was afterwards."""
    monkeypatch.setenv("OTPROP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OTPROP_DATA", raising=False)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(fetch, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def server():
    with Server() as running:
        yield running
