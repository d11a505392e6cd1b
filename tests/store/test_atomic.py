"""Whole files are replaced in one step or not at all."""

from __future__ import annotations

import os

import pytest

from replaykit.store import atomic


def test_a_new_file_and_its_folders_are_made(tmp_path):
    atomic.write_text(tmp_path / "a" / "b.json", "ä\n")
    assert (tmp_path / "a" / "b.json").read_bytes() == "ä\n".encode()


def test_a_new_file_gets_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    atomic.write_bytes(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o604)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    atomic.write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        atomic.write_bytes(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a", b"old")]


def test_a_pipe_is_written_into_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    atomic.write_bytes(path, b"through")
    assert os.read(reader, 100) == b"through" and [p.name for p in tmp_path.iterdir()] == ["pipe"]
    os.close(reader)


def test_a_file_name_that_is_no_text_can_stand_in_a_text(tmp_path):
    atomic.write_text(tmp_path / "a", '"\udcff"')
    assert (tmp_path / "a").read_bytes() == b'"\\udcff"'
