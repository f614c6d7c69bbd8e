"""What commands print when something goes wrong, and that their messages are not changed."""

import json

import pytest
import typer

from deccs.app.output import UNEXPECTED, Output, errors_as_messages


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 3 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: error code 12"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_no_memory_is_a_message_whoever_noticed_it(error, capsys):
    with pytest.raises(typer.Exit) as ended, errors_as_messages(Output(as_json=True)):
        raise error
    assert ended.value.exit_code == UNEXPECTED
    out, err = capsys.readouterr()
    assert err.startswith("deccs: MemoryError: there is no memory left") and str(error) in err
    assert json.loads(out)["exit_code"] == UNEXPECTED


def test_other_errors_keep_their_traceback():
    with pytest.raises(RuntimeError, match="a bug"), errors_as_messages(Output()):
        raise RuntimeError("a bug")


def test_an_error_is_told_where_there_is_no_memory_to_load_code(capsys, monkeypatch):
    """rich loads tables of emoji and more when it first prints."""
    output = Output()
    monkeypatch.setattr(output.stderr, "print", lambda *_, **__: pytest.fail("printed with rich"))
    with pytest.raises(typer.Exit), errors_as_messages(output):
        raise MemoryError
    assert capsys.readouterr().err.startswith("deccs: MemoryError")


def test_names_with_colons_are_printed_as_they_are(capsys):
    output = Output()
    output.note("read :key:.csv")
    output.result({}, "written :key:/labels.csv")
    out, err = capsys.readouterr()
    assert (out, err) == ("written :key:/labels.csv\n", "read :key:.csv\n")
