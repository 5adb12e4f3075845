"""Platforms, workloads, traces, results and sweeps."""

import csv
import doctest
import pickle
import re
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import iolab
import pytest
from conftest import ROOT
from iolab.caches import Aggregation, NoCache

WORKLOAD = {
    "name": "blocks",
    "files": [{"name": "f"}],
    "applications": [
        {
            "name": "writer",
            "ranks": 10,
            "phases": [
                {
                    "name": "write",
                    "commands": [
                        {"open": "f"},
                        {"write": "f", "rank_step": "1m", "bytes": "50k", "calls": 20},
                        {"close": "f"},
                    ],
                }
            ],
        }
    ],
}

TEXT = """
name = "blocks"
[[files]]
name = "f"
[[applications]]
name = "writer"
ranks = 10
[[applications.phases]]
name = "write"
commands = [
  { open = "f" },
  { write = "f", rank_step = "1m", bytes = "50k", calls = 20 },
  { close = "f" },
]
"""

PARTDIFF = ROOT / "samples/traces/hdtrace/partdiff-2009/partdiff-par.proj"


def test_a_dictionary_and_its_text_are_the_same_workload(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text(TEXT)
    results = [iolab.simulate(one) for one in (WORKLOAD, TEXT, iolab.Workload.load(path))]
    assert results[0] == results[1] == results[2]


def test_platforms_come_from_presets_texts_dictionaries_and_files(tmp_path):
    preset = iolab.Platform.preset("classic-hdd")
    described = tomllib.loads(preset.text)
    path = tmp_path / "p.toml"
    path.write_text(preset.text)
    given = ["classic-hdd", preset, preset.text, described, iolab.Platform.load(path)]
    results = [iolab.simulate(TEXT, one) for one in given]
    assert all(result == results[0] for result in results)
    described["nodes"][0]["nic"] = {"rate": "10m", "latency": "200us"}
    assert iolab.simulate(TEXT, described).seconds > results[0].seconds


def test_the_result_has_totals_and_tables():
    result = iolab.simulate(WORKLOAD, cache=Aggregation())
    asked = 10 * 20 * 50 * 1024
    assert result.bytes == asked
    assert result.bandwidth == asked / result.seconds
    assert sum(server.written_bytes for server in result.servers) == asked
    for server in result.servers:
        assert server.accesses == server.no_seek + server.near + server.far
        assert 0 < server.busy_seconds <= result.seconds
    application = result.applications[0]
    assert (application.name, application.rank_count) == ("writer", 10)
    assert application.phases[0].calls == 200
    switch = next(link for link in result.links if link.kind == "switch")
    assert switch.bytes > asked
    table = result.table("servers").splitlines()
    assert len(table) == 1 + len(result.servers)
    assert table[0].split()[:3] == ["name", "accesses", "no_seek"]
    rows = list(csv.DictReader(result.csv().splitlines()))
    parts = [row["part"] for row in rows]
    assert parts[:3] == ["run", "run-low", "run-high"] and parts.count("server") == len(result.servers)
    assert float(rows[0]["end_seconds"]) == result.seconds


def test_the_result_is_the_median_of_a_band_and_says_its_range():
    workload = {**WORKLOAD, "name": "band"}
    result = iolab.simulate(workload, cache="none")
    alone = sorted(iolab.simulate(workload, cache="none", tie_seed=seed).seconds for seed in range(1, 10))
    assert (result.low, result.seconds, result.high, result.tie_seeds) == (alone[0], alone[4], alone[8], 9)
    single = iolab.simulate(workload, cache="none", seeds=1)
    assert single.low == single.time == single.high and single.tie_seeds == 1
    for wrong in [{"seeds": 0}, {"seeds": 3, "tie_seed": 1}]:
        with pytest.raises(iolab.Error):
            iolab.simulate(workload, **wrong)


def test_equal_arguments_give_equal_results_and_tie_seeds_others():
    workload = TEXT.replace('rank_step = "1m", bytes = "50k", calls = 20', 'pattern = "strided:strip=512k"')

    def run(seed):
        return iolab.simulate(workload, cache="none", tie_seed=seed)

    assert run(4) == run(4)
    assert len({run(seed).seconds for seed in range(6)}) > 1


SLOW_DISK = {"name": "one slow disk", "faults": [{"kind": "slow-device", "server": "server3", "factor": 4.0}]}


def test_faults_cost_time_and_are_told():
    sound, slow = (iolab.simulate(WORKLOAD, faults=faults) for faults in (None, SLOW_DISK))
    assert slow.seconds > 1.5 * sound.seconds
    lossy = {"faults": [{"kind": "lossy-link", "link": "client2", "share": 0.05}]}
    points = iolab.sweep(WORKLOAD, faults=[None, lossy])
    assert [point.result.lost_packet_count > 0 for point in points] == [False, True]
    assert points[0].result == sound


def test_a_sweep_is_the_product_of_its_lists_on_several_workers():
    points = iolab.sweep(WORKLOAD, cache=["none", "aggregation"], tie_seed=range(3), workers=2)
    assert len(points) == 6
    assert points[4].parameters == {"cache": "aggregation", "tie_seed": 1}
    assert points[4].result == iolab.simulate(WORKLOAD, cache="aggregation", tie_seed=1)
    rows = list(csv.DictReader(points.csv().splitlines()))
    assert rows[0]["cache"] == "none" and float(rows[0]["seconds"]) == points[0].result.seconds
    assert points.best().parameters["cache"] == "aggregation"
    assert points == iolab.sweep(WORKLOAD, cache=["none", "aggregation"], tie_seed=range(3), workers=1)


@pytest.fixture(scope="module")
def processes():
    # Children that begin anew share nothing: as on another node.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


def test_a_sweep_in_other_processes_comes_to_the_same(processes):
    workload, platform = iolab.Workload(WORKLOAD), iolab.Platform.preset("classic-hdd")
    parameters = {"cache": ["none", Aggregation()], "seeds": [1, 3]}
    here = iolab.sweep(workload, [platform], **parameters)
    there = iolab.sweep(workload, [platform], executor=processes, **parameters)
    assert [point.result for point in there] == [point.result for point in here]
    assert len({point.result.seconds for point in there}) > 1
    trace = iolab.Trace.load(PARTDIFF)
    points = iolab.sweep([trace], executor=processes, seeds=1)
    assert points[0].result == iolab.run(trace, seeds=1)


def test_what_fails_elsewhere_is_named_as_here(processes):
    with pytest.raises(iolab.Error, match="at cache = magic") as raised:
        iolab.sweep(WORKLOAD, cache=["none", "magic"], executor=processes)
    assert raised.value.hint
    with pytest.raises(iolab.Error, match="cannot be sent to another process") as raised:
        iolab.sweep(WORKLOAD, cache=[lambda settings: None], executor=processes)
    assert raised.value.hint
    # The executor is the caller's, and goes on.
    assert processes.submit(abs, -1).result() == 1


def test_tables_of_pandas_hold_what_the_results_hold():
    points = iolab.sweep(WORKLOAD, cache=["none", "aggregation"])
    frame = points.frame()
    assert list(frame["cache"]) == ["none", "aggregation"]
    assert list(frame["seconds"]) == [point.result.seconds for point in points]
    assert ((frame["low"] <= frame["seconds"]) & (frame["seconds"] <= frame["high"])).all()
    result = points[0].result
    servers = result.frame("servers")
    assert servers["written_bytes"].sum() == sum(server.written_bytes for server in result.servers)
    assert list(result.frame("phases")["application"]) == ["writer"]
    assert result.frame("phases")["written_bytes"].sum() == 10 * 20 * 51200
    assert "aggregation" in points._repr_html_()
    with pytest.raises(iolab.Error, match="no `server`") as raised:
        result.frame("server")
    assert "servers" in raised.value.hint


def test_a_plot_shows_medians_with_their_range():
    import matplotlib

    matplotlib.use("Agg")
    points = iolab.sweep(WORKLOAD, ["classic-hdd", "classic-ssd"], cache=["none", "aggregation"])
    axes = points.plot("platform", "bandwidth")
    lines = {container.get_label(): container for container in axes.containers}
    assert set(lines) == {"cache = none", "cache = aggregation"}
    drawn = lines["cache = none"].lines[0].get_ydata()
    wanted = [point.result.bandwidth for point in points if point.parameters["cache"] == "none"]
    assert list(drawn) == wanted
    with pytest.raises(iolab.Error, match="`seeds` was not varied"):
        points.plot("seeds")


def test_progress_is_shown_for_each_run(capsys):
    iolab.sweep(WORKLOAD, tie_seed=range(3), progress=True)
    assert re.search(r"3/3", capsys.readouterr().err)


def test_everything_has_a_short_name_of_its_own():
    assert repr(iolab.Platform.preset("classic-hdd")) == "<iolab.Platform: classic-hdd>"
    assert repr(iolab.Workload(WORKLOAD)) == "<iolab.Workload: blocks>"
    trace = iolab.Trace.load(PARTDIFF)
    assert repr(trace) == f"<iolab.Trace: partdiff-par, 5 ranks, {len(trace)} rows>"
    result = iolab.simulate(WORKLOAD)
    assert repr(result).startswith("<iolab.Result: ") and len(repr(result)) < 120
    assert repr(iolab.sweep(WORKLOAD, seeds=[1])) == "<iolab.Sweep: 1 runs over seeds>"
    assert pickle.loads(pickle.dumps(result)) == result
    manifest = tomllib.loads((ROOT / "tools/python/pyproject.toml").read_text())
    assert iolab.__version__ == manifest["project"]["version"]


def test_a_sweep_varies_platforms_and_workloads_too():
    points = iolab.sweep([WORKLOAD], ["classic-hdd", "classic-ssd"])
    hdd, ssd = (point.result.seconds for point in points)
    assert ssd < hdd


def test_the_real_program_of_2009_runs_from_its_trace():
    trace = iolab.Trace.load(PARTDIFF)
    assert (trace.name, trace.rank_count) == ("partdiff-par", 5)
    platform = iolab.Platform.load(ROOT / "samples/partdiff-2009/platform.toml")
    none = iolab.run(trace, platform, cache=NoCache(), order="published")
    assert none.seconds == pytest.approx(8.04, rel=0.05)
    assert iolab.run(trace, platform, cache=Aggregation()).bandwidth > 2 * none.bandwidth


def test_the_catalogues_can_be_listed():
    assert list(iolab.caches_by_name())[0] == "none"
    assert "ring" in iolab.collectives_by_command()["allgather"]
    assert {"classic-hdd", "nvme"} <= set(iolab.presets())
    with pytest.raises(AttributeError, match="choose from NoCache"):
        from iolab import caches

        caches.WriteThrough


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: iolab.Platform.preset("cluster"), "no platform preset `cluster`"),
        (lambda: iolab.Platform("paket_bytes = 3"), "paket_bytes"),
        (lambda: iolab.Platform({"nodes": None}), "cannot be written as TOML"),
        (lambda: iolab.Platform.load("/nowhere.toml"), "/nowhere.toml"),
        (lambda: iolab.Workload("files = 3"), "files"),
        (lambda: iolab.simulate(WORKLOAD, cache="magic"), "magic"),
        (lambda: iolab.simulate(WORKLOAD, collective={"allgather": "magic"}), "magic"),
        (lambda: iolab.simulate(WORKLOAD, collective={"dance": "ring"}), "dance"),
        (lambda: iolab.simulate(WORKLOAD, order="any"), "no order `any`"),
        (lambda: iolab.simulate(WORKLOAD, {"name": "empty"}), "`empty` has no nodes"),
        (lambda: iolab.simulate(WORKLOAD, faults="faults = 3"), "faults"),
        (lambda: iolab.simulate(WORKLOAD, faults={"faults": [{"kind": "flood"}]}), "flood"),
        (lambda: iolab.sweep(WORKLOAD, cach=["none"]), "no parameter `cach`"),
        (lambda: iolab.sweep(WORKLOAD, workers=2, executor=object()), "`workers` and `executor`"),
        (lambda: iolab.sweep(WORKLOAD, cache=["none", "magic"]), "at cache = magic"),
        (lambda: iolab.Trace.load("/nowhere.proj"), "nowhere.proj"),
        (lambda: iolab.Trace.load(__file__), "test_simulate.py"),
    ],
)
def test_what_is_wrong_is_named_with_a_way_out(call, told):
    with pytest.raises(iolab.Error) as raised:
        call()
    assert told in str(raised.value)
    assert raised.value.hint, raised.value


def test_a_cut_trace_is_refused_by_file_and_line(tmp_path):
    for path in PARTDIFF.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:9000])
    with pytest.raises(iolab.Error, match="partdiff-par.proj, line"):
        iolab.Trace.load(tmp_path / PARTDIFF.name)


def test_the_examples_of_the_documentation_run():
    assert doctest.testmod(iolab.simulation).failed == 0
    assert doctest.testmod(iolab).failed == 0


def test_strategies_are_applied_inside_the_simulation() -> None:
    phase = {"commands": [{"open": "own"}, {"write": "own", "bytes": 100, "calls": 500}, {"close": "own"}]}
    workload = {
        "files": [{"name": "own", "per_rank": True}],
        "applications": [{"ranks": 4, "phases": [phase]}],
    }
    plain, held = iolab.simulate(workload), iolab.simulate(workload, apply="write-back")
    assert held.bytes == plain.bytes and held.seconds < plain.seconds / 10
    assert held.applications[0].notes[0].startswith("2000 accesses went through strategies, ")
    points = iolab.sweep(workload, apply=["null", ("null", "write-back")], tie_seed=1)
    assert [point.result.seconds > 1 for point in points] == [True, False]
    with pytest.raises(iolab.Error, match="write-forth"):
        iolab.simulate(workload, apply="write-forth")


@pytest.mark.parametrize("kind", [iolab.Workload, iolab.Platform, iolab.Scenario])
def test_a_path_in_the_place_of_text_is_told_with_what_reads_it(kind: type) -> None:
    with pytest.raises(iolab.Error, match="a path, not the text") as told:
        kind("plans/some.toml")
    assert told.value.hint == f"iolab.{kind.__name__}.load(path) reads a file"
