"""Files that come inside the lines of an export: their bytes go to the disk and not to memory."""

from __future__ import annotations

import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.errors import Unavailable
from gateway.domain.message import MediaRef
from gateway.ports.sessions import SessionCopy
from gateway.store.jsonl.reader import TrunklineSource
from tests.store.jsonl.written import HEADER, lines, read, read_one, row, written
from tests.store.strategies import FILES


def test_a_file_that_did_not_come_along_is_known_by_name_only() -> None:
    cat = MediaRef(ref="m_3", kind="image", name="cat.png")
    found = read_one("".join(lines(SessionCopy(session=HEADER, rows=[row(1, media=(cat,))]))))
    assert found.copy is not None
    assert found.copy.rows[0].media == (replace(cat, ref=""),)
    assert (found.files, found.notes) == ({}, ["1 file that its rows name did not come with it"])


def test_bytes_that_changed_on_the_way_are_not_taken_for_the_file() -> None:
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    found = read_one("".join(written(copy)).replace('"data":"AwMD"', '"data":"AwME"'))
    assert found.files == {}
    assert "line 3: the bytes of the file are not those that were written; the line is left out" in found.repairs


def test_the_bytes_of_files_are_put_aside_on_the_disk_until_they_are_not_needed() -> None:
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    found = read_one("".join(written(copy)))
    path = found.files["m_3"].path
    assert path is not None
    assert path.read_bytes() == FILES["m_3"]
    found.done()
    assert not path.parent.exists()


def test_nothing_stays_aside_of_a_reading_that_was_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    sessions = TrunklineSource(io.BytesIO("".join(written(copy, copy)).encode())).sessions()
    next(sessions)
    del sessions
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [("AwMD", "Aw!D"), ("AwMD", "AwM"), ('"data":"AwMD"', '"data":7')])
def test_bytes_that_are_no_base64_cost_their_line(change: tuple[str, str]) -> None:
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    found = read_one("".join(written(copy)).replace(*change))
    assert found.files == {}
    assert any(repair.startswith("line 3: ") for repair in found.repairs)


def test_a_file_line_that_another_program_wrote_anew_is_read_too() -> None:
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    lines = [json.dumps(dict(sorted(json.loads(line).items()))) + "\n" for line in written(copy)]
    found = read_one("".join(lines))
    assert [file.path and file.path.read_bytes() for file in found.files.values()] == [FILES["m_3"]]


def test_a_full_disk_is_not_told_as_damage_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = SessionCopy(session=HEADER, rows=[row(1, media=(MediaRef(ref="m_3", kind="image"),))])
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")
    with pytest.raises(Unavailable, match="TMPDIR"):
        read("".join(written(copy)))
