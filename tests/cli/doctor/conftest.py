"""A machine of its own for the doctor, and an installation on it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.cli.doctor.patient import Patient
from tests.cli.shelf import DIRECT


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep away what the machine of whoever runs the tests has set, and refuse every connection."""
    for name in list(os.environ):
        if name.startswith("TRUNKLINE_") or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("the doctor calls nobody")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A store with a chat in it, of a gateway that was stopped in good order."""
    data = tmp_path / "data"
    data.mkdir()
    patient = Patient(data)
    patient.say(DIRECT, "hello")
    with patient.gateway():
        pass
    return patient
