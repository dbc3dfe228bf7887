"""Manifests are read with their place, and what cannot be read is named by file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cli.manifests import read
from moorage.core.errors import InputError

OBJECT = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {}\n"


def test_documents_lists_and_json_are_unfolded_in_order(tmp_path):
    (tmp_path / "a.yaml").write_text(OBJECT.format("one") + "---\n" + OBJECT.format("two"))
    (tmp_path / "b.json").write_text(
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "three"}}]}'
    )
    (tmp_path / "note.txt").write_text("not a manifest")
    found = read([str(tmp_path)])
    assert [(m.key.name, m.document) for m in found] == [("one", 1), ("two", 2), ("three", 1)]


def test_times_and_yes_stay_what_kubernetes_makes_of_them(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(OBJECT.format("x") + "when: 2026-01-01T00:00:00Z\n")
    assert read([str(file)])[0].object["when"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1,\nb: 2\n", ":3:1"),
        ("a: 1\na: 2\n", ":2:1"),
        ("a: b: c\n", ":1:5"),
        ("\tx: 1\n", ":1:1"),
    ],
)
def test_unreadable_text_is_named_by_file_line_and_column(tmp_path, text, place):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read([str(file)])
    assert f"{file}{place}" in str(caught.value)


def test_a_folder_that_changes_while_it_is_read_is_said_to_be_so(tmp_path, monkeypatch):
    """`moorage lint /` met processes that ended: their folders below /proc were gone."""

    def vanishing(_path, _pattern):
        raise FileNotFoundError(2, "No such file or directory", "/proc/7224")

    monkeypatch.setattr(Path, "rglob", vanishing)
    with pytest.raises(InputError, match="/proc/7224: no such file or directory"):
        read([str(tmp_path)])


def test_json_with_escaped_pairs_is_read_and_half_a_pair_is_named_by_its_place(tmp_path):
    file, written = tmp_path / "a.json", '{"apiVersion":"v1","kind":"Secret","stringData":{"password":"%s"}}'
    file.write_text(written % r"\ud83d\ude00")
    assert read([str(file)])[0].object["stringData"] == {"password": "\N{GRINNING FACE}"}
    file.write_text(written % r"\ud83d")
    with pytest.raises(InputError, match=r"a\.json:1:64: "):
        read([str(file)])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- a\n", "is not an object"),
        ("kind: Secret\n", "apiVersion or kind is missing"),
        ("apiVersion: 1\nkind: a\n", "as text"),
    ],
)
def test_a_document_that_is_no_object_is_named_by_its_number(tmp_path, text, why):
    file = tmp_path / "bad.yaml"
    file.write_text(OBJECT.format("ok") + "---\n" + text)
    with pytest.raises(InputError, match="document 2") as caught:
        read([str(file)])
    assert why in str(caught.value)


def test_missing_files_empty_folders_and_binary_are_said_to_be_so(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read([str(tmp_path / "none.yaml")])
    with pytest.raises(InputError, match=r"holds no \*.yaml"):
        read([str(tmp_path)])
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read([str(tmp_path / "x.yaml")])
