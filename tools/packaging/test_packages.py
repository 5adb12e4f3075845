"""The tarball, unpacked in a strange place, works there; and what it is linked with is looked at.

Made of the binaries that the tests use: building for old systems takes a quarter of an hour and
another linker, which `tools/packaging/build` without `--binaries` does.
"""

import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/packaging"
# Nothing of the project, of Rust or of a user.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def made(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, HERE / "build", "--output", output, *options], capture_output=True, text=True)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("packages")
    done = made(output, "--only", "tar", "--binaries", str(ROOT / "target/debug"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    return output


def tarball(packages: Path) -> Path:
    return next(it for it in packages.glob("*.tar.gz") if "debug" not in it.name)


@pytest.fixture(scope="module")
def prefix(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user put it: a name with a blank, moved after it was unpacked."""
    place = tmp_path_factory.mktemp("somebody's")
    with tarfile.open(tarball(packages)) as tar:
        tar.extractall(place, filter="data")
    moved = place / "my tools"
    shutil.move(next(place.iterdir()), moved)
    return moved


def call(prefix: Path, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [prefix / "bin/iolab", *words], env=BARE, capture_output=True, text=True, **more)  # type: ignore[call-overload,no-any-return]


def test_it_records_reports_and_shows_what_a_shell_does(prefix: Path, tmp_path: Path) -> None:
    assert call(prefix, "--version").stdout.startswith("iolab ")
    program = "for i in 1 2 3; do echo line $i; done > out.txt; cat out.txt"
    done = call(prefix, "record", "-o", "run.iot", "--", "sh", "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "line 1\nline 2\nline 3\n"), done.stderr
    report = call(prefix, "report", "run.iot", cwd=tmp_path)
    assert report.returncode == 0 and "out.txt" in report.stdout, report.stderr
    page = call(prefix, "view", "run.iot", "-o", "run.html", cwd=tmp_path)
    assert page.returncode == 0 and (tmp_path / "run.html").stat().st_size > 10_000
    done = call(prefix, "run", "--apply", "write-back:paths=**", "--", "sh", "-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "line 1\nline 2\nline 3\n"), done.stderr


def test_manual_completions_and_plans_come_along(prefix: Path) -> None:
    page = gzip.decompress((prefix / "share/man/man1/iolab-fs-up.1.gz").read_bytes()).decode()
    assert ".TH iolab-fs-up" in page
    for name in ("bash-completion/completions/iolab", "zsh/site-functions/_iolab",
                 "fish/vendor_completions.d/iolab.fish"):
        assert "reproduce" in (prefix / "share" / name).read_text()
    workload = prefix / "share/iolab/samples/workloads/checkpoint.toml"
    done = call(prefix, "simulate", "--workload", str(workload), "--platform", "classic-hdd")
    assert done.returncode == 0, done.stderr
    assert (prefix / "share/iolab/plans/smoke.toml").exists()
    assert (prefix / "share/doc/iolab/docs/howto/run.md").exists()
    book = prefix / "share/doc/iolab/html"
    assert "write-back" in (book / "docs/howto/run.html").read_text()
    assert (book / "reference/commands/iolab-record.html").exists()
    module = next((prefix / "share/modulefiles/iolab").iterdir())
    assert module.name in tarball_version(prefix) and "$" not in module.read_text()


def tarball_version(prefix: Path) -> str:
    return call(prefix, "--version").stdout.split()[1] + ".lua"


def test_one_commit_makes_one_package(packages: Path, tmp_path: Path) -> None:
    assert made(tmp_path, "--only", "tar", "--binaries", str(ROOT / "target/debug")).returncode == 0
    sums = (packages / "SHA256SUMS").read_text()
    assert sums == (tmp_path / "SHA256SUMS").read_text()
    for line in sums.splitlines():
        sum, name = line.split()
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == sum
    with tarfile.open(tarball(packages)) as tar:
        assert {(it.uid, it.gid) for it in tar} == {(0, 0)}


def test_binaries_that_are_not_there_are_named(tmp_path: Path) -> None:
    done = made(tmp_path / "out", "--only", "tar", "--binaries", str(tmp_path))
    assert done.returncode == 1
    assert "libiolab_intercept.so" in done.stderr and "cargo build --release" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """One that needs a symbol of glibc 2.34, or of 2.33 where stat is asked for."""
    source = tmp_path / "it.c"
    source.write_text("#include <sys/stat.h>\nint f(struct stat *s) { return stat(\"/\", s); }\n")
    path = tmp_path / "libit.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", path, source], check=True)
    return path


def looked_at(glibc: str, first: str, library: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, HERE / "old_systems.py", glibc, first, library]
    return subprocess.run(command, capture_output=True, text=True)


def test_what_old_systems_could_not_load_is_refused(library: Path) -> None:
    done = looked_at("2.17", library.name, library)
    assert done.returncode == 1
    assert "needs GLIBC_2.33" in done.stderr, done.stderr
    assert looked_at("2.33", library.name, library).returncode == 0


def test_the_initialiser_is_made_the_first(library: Path) -> None:
    def flags() -> str:
        return subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout

    assert "INITFIRST" not in flags()
    assert looked_at("2.40", "another.so", library).returncode == 0
    assert "INITFIRST" not in flags()
    assert looked_at("2.40", library.name, library).returncode == 0
    assert "INITFIRST" in flags() and "NOW" in flags()
