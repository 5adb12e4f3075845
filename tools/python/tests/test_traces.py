"""Traces, reports and comparisons; the queries of the documentation."""

import html
import inspect
import json
import os
import pickle
import re
import sys
import threading
import time

import iolab
import pandas
import pytest
from conftest import ROOT

DARSHAN = ROOT / "samples/darshan/mpi-io-test-x86_64-3.1.3.darshan"
COUNTERS = ROOT / "samples/darshan/mpi-io-test-x86_64-3.0.0.darshan"
DFTRACER = ROOT / "samples/dftracer/unet3d-2023.pfw.gz"
CM1 = [ROOT / f"samples/dftracer/cm1-2024-{process}.pfw.gz" for process in (3537780, 3537781)]
PARTDIFF = ROOT / "samples/traces/hdtrace/partdiff-2009/partdiff-par.proj"
STRACE = ROOT / "samples/traces/strace/fork_and_thread.txt"


@pytest.mark.parametrize("path", [DARSHAN, DFTRACER, PARTDIFF, STRACE], ids=lambda path: path.name)
def test_every_kind_of_trace_is_loaded_and_saved_as_one_of_iolab(path, tmp_path):
    trace = iolab.Trace.load(path, format="strace" if path == STRACE else None)
    assert len(trace) > 10 and trace.header["origin"] == "imported"
    trace.save(tmp_path / "run.iot")
    again = iolab.Trace.load(tmp_path / "run.iot")
    pandas.testing.assert_frame_equal(again.frame(), trace.frame())
    assert again.header == {**trace.header, "format_version": again.header["format_version"]}
    assert str(again.report()) == str(trace.report())


def test_a_directory_of_files_is_one_trace(tmp_path):
    for path in CM1:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    apart = [iolab.Trace.load(path) for path in CM1]
    assert len(iolab.Trace.load(tmp_path)) == sum(len(trace) for trace in apart)


def test_the_frame_has_the_calls_of_the_trace():
    trace = iolab.Trace.load(DARSHAN)
    frame = trace.frame()
    assert len(frame) == len(trace)
    writes = frame[(frame["layer"] == "posix") & (frame["op"] == "pwrite")]
    reads = frame[(frame["layer"] == "posix") & (frame["op"] == "pread")]
    summary = trace.report().summary
    assert writes["result"].sum() == summary["written_bytes"] == 64 << 20
    assert reads["result"].sum() == summary["read_bytes"]
    assert set(frame["rank"]) == {0, 1, 2, 3} and (frame["end_ns"] >= frame["start_ns"]).all()
    paths = [file["path"] for file in trace.header["files"]]
    assert set(frame["path"].dropna()) <= set(paths) and str(frame["path"].dtype) == "category"


def test_a_report_is_plain_data_text_a_page_and_html(tmp_path):
    trace = iolab.Trace.load(DFTRACER)
    report = trace.report()
    assert report.findings and report.findings[0].message and 0 <= report.findings[0].share <= 1
    assert report.data["summary"] == report.summary and json.dumps(report.data)
    assert len(report.frame("files")) == len(report.data["files"]) == len(report.table("files").splitlines()) - 1
    assert list(report.frame("findings")["rule"]) == [one.rule for one in report.findings]
    assert report.findings[0].message in str(report)
    shown = report._repr_html_()
    assert report.findings[0].rule in shown and shown.count("<td>") > 10
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().lower().startswith("<!doctype html")
    with pytest.raises(iolab.Error, match="no `ranks`") as raised:
        report.frame("ranks")
    assert "choose from findings" in raised.value.hint


def test_plots_show_the_numbers_of_reports_and_comparisons(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    report = iolab.Trace.load(DARSHAN).report()
    axes = report.plot()
    read, written = [patch.get_data() for patch in axes.patches]
    assert sum(written.values * (written.edges[1:] - written.edges[:-1])) == pytest.approx(64 << 20)
    assert sum(read.values * (read.edges[1:] - read.edges[:-1])) == pytest.approx(report.summary["read_bytes"])
    last = report.data["timeline"]["slice_ns"] * len(report.data["timeline"]["slices"]) / 1e9
    assert read.edges[-1] == written.edges[-1] == pytest.approx(last)
    compared = iolab.compare(made(tmp_path, "few", 100), made(tmp_path, "many", 900))
    axes = compared.plot()
    assert axes.patches[-1].get_width() == compared.differences[0].seconds
    assert axes.get_yticklabels()[-1].get_text() == "more-calls a"


def test_a_name_in_a_trace_is_no_markup(tmp_path):
    trace = tmp_path / "strace.txt"
    trace.write_text(STRACE.read_text().replace('/out', '/<b>&out'))
    report = iolab.Trace.load(trace, format="strace").report()
    assert "<b>&out" in str(report) + json.dumps(report.data) and "<b>&out" not in report._repr_html_()


def made(tmp_path, name, calls):
    """A trace of a program that makes so many writes."""
    lines = ['7 1795221000.000000 openat(AT_FDCWD, "/data/a", O_WRONLY|O_CREAT, 0666) = 3 <0.000010>']
    lines += [f'7 {1795221000.001 + i * 0.00011:.6f} write(3, "x"..., 4096) = 4096 <0.000100>' for i in range(calls)]
    lines += [f"7 {1795221000.002 + calls * 0.00011:.6f} close(3) = 0 <0.000010>"]
    path = tmp_path / f"{name}.txt"
    path.write_text("\n".join(lines) + "\n")
    trace = iolab.Trace.load(path, format="strace")
    trace.save(tmp_path / f"{name}.iot")
    return tmp_path / f"{name}.iot"


def test_a_comparison_names_what_differs_and_nothing_between_equal_runs(tmp_path):
    few, many = made(tmp_path, "few", 100), made(tmp_path, "many", 900)
    compared = iolab.compare(few, iolab.Trace.load(many))
    assert compared.differences and compared.slower_by > 0 and not compared.is_equal
    first = compared.differences[0]
    assert (first.kind, first.file, first.data["kind"]) == ("more-calls", "/data/a", "more-calls"), str(compared)
    assert first.seconds == pytest.approx(800 * 0.0001, rel=0.01)
    assert str(compared).startswith("A ") and html.escape(first.sentence) in compared._repr_html_()
    assert len(compared.frame("functions")) == len(compared.data["functions"]) > 0
    compared.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    same = iolab.compare(few, few)
    assert same.is_equal and same.differences == [] and same.slower_by == 0
    several = iolab.compare([few, few, few], [many, many, many])
    assert several.data["a"]["runs"] == [str(few)] * 3
    with pytest.raises(iolab.Error, match="no run of B"):
        iolab.compare(few, [])


def test_what_cannot_be_loaded_is_an_exception_of_python_with_a_way_out(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        iolab.Trace.load(tmp_path / "nowhere.iot")
    assert isinstance(raised.value, iolab.TraceNotFoundError) and isinstance(raised.value, iolab.Error)
    assert raised.value.filename == str(tmp_path / "nowhere.iot") and raised.value.hint
    assert "hint: " in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.errno) == (str(raised.value), raised.value.errno)
    (tmp_path / "text.iot").write_text("no trace")
    for path in (tmp_path / "text.iot", COUNTERS, tmp_path, STRACE):
        with pytest.raises(ValueError) as refused:
            iolab.Trace.load(path)
        assert isinstance(refused.value, iolab.TraceError) and refused.value.hint, path
    with pytest.raises(iolab.Error, match="no format `vampir`"):
        iolab.Trace.load(STRACE, format="vampir")


def test_a_trace_goes_where_a_file_can_be_written_and_harms_nothing(tmp_path):
    trace = iolab.Trace.load(DARSHAN)
    with pytest.raises(iolab.Error, match="nowhere") as raised:
        trace.save(tmp_path / "nowhere/run.iot")
    assert raised.value.hint
    (tmp_path / "run.iot").write_text("mine")
    (tmp_path / "run.iot").chmod(0o640)
    trace.save(tmp_path / "run.iot")
    assert len(iolab.Trace.load(tmp_path / "run.iot")) == len(trace)
    assert os.stat(tmp_path / "run.iot").st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["run.iot"]


def test_progress_is_shown_in_rows(tmp_path, capsys):
    iolab.Trace.load(DARSHAN).save(tmp_path / "run.iot")
    trace = iolab.Trace.load(tmp_path / "run.iot", progress=True)
    assert f"{len(trace)}" in re.sub(r"\s", "", capsys.readouterr().err)


def test_a_job_that_was_cut_off_is_read_from_its_parts_with_a_warning(tmp_path):
    (tmp_path / "run.iot.parts").mkdir()
    iolab.Trace.load(CM1[0]).save(tmp_path / "run.iot.parts/rank-0.iot")
    with pytest.warns(UserWarning, match="is not complete; read from"):
        trace = iolab.Trace.load(tmp_path / "run.iot")
    assert len(trace) > 1000


def test_other_threads_run_while_a_trace_is_read_and_judged():
    trace, ran, done = iolab.Trace.load(DFTRACER), [], threading.Event()

    def run():
        while not done.is_set():
            ran.append(None)
            time.sleep(0.0001)

    # Nobody is made to let others go on: what does not do so by itself keeps them all waiting.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    other = threading.Thread(target=run)
    try:
        other.start()
        for work in (lambda: iolab.Trace.load(DFTRACER), trace.report, lambda: iolab.compare(trace, trace)):
            before = len(ran)
            work()
            assert len(ran) > before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()


def test_everything_public_says_what_it_is():
    for name in ("Trace", "Report", "Finding", "Comparison", "Difference", "compare", "TraceError", "TraceNotFoundError"):
        assert name in iolab.__all__ and inspect.getdoc(getattr(iolab, name)), name


def test_the_queries_of_the_documentation_run(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    trace = iolab.Trace.load(CM1[0])
    trace.save("run.iot")
    os.mkdir("job.iot")
    for rank, path in enumerate(CM1):
        iolab.Trace.load(path).save(f"job.iot/rank-{rank}.iot")
    page = (ROOT / "docs/howto/query-a-trace.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 6
    scope = {}
    for block in blocks:
        exec(block, scope)
    frame = trace.frame()
    posix = frame[frame["layer"] == "posix"]
    sizes = scope["sizes"].set_index("op")
    assert sizes.loc["read", "calls"] == (posix["op"] == "read").sum()
    moved = posix.loc[(posix["op"] == "read") & (posix["result"] > 0), "result"].sum()
    assert sizes.loc["read", "bytes"] == moved
    slowest = scope["by_file"].iloc[0]
    assert slowest["calls"] == (frame["path"] == slowest["path"]).sum() > 0
    assert scope["by_part"]["calls"].sum() == len(iolab.Trace.load("job.iot"))
    failed = iolab.Trace.load("failed.iot").frame()
    assert len(failed) == (frame["result"] < 0).sum() > 0
    assert len(scope["slowest"]) == 10
    assert scope["per_file"].sum() == frame["path"].notna().sum()
