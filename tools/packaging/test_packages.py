"""The tarball, unpacked in a strange place, works there, the wheel in an environment of its own; and what
they are linked with is looked at.

Made of the binaries that the tests use: building for old systems takes a quarter of an hour and
another linker, which `tools/packaging/build` without `--binaries` does.
"""

import contextlib
import gzip
import hashlib
import importlib.machinery
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import types
from pathlib import Path
from typing import Any

import bill_of_materials
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
    done = made(output, "--only", "tar", "--only", "wheel", "--binaries", str(ROOT / "target/debug"))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 7
    return output


def tarball(packages: Path) -> Path:
    return next(it for it in packages.glob("*.tar.gz") if "debug" not in it.name)


def unpack(packed: Path, place: Path) -> None:
    """As users do. What Python has for it differs between the versions of one release, 3.11.2 and 3.11.4."""
    place.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xzf", packed, "-C", place], check=True)


@pytest.fixture(scope="module")
def prefix(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user put it: moved after it was unpacked."""
    place = tmp_path_factory.mktemp("somebody's")
    unpack(tarball(packages), place)
    moved = place / "tools"
    shutil.move(next(place.iterdir()), moved)
    return moved


def call(prefix: Path, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [prefix / "bin/iolab", *words], env=BARE, capture_output=True, text=True, **more)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def environment(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the wheel."""
    place = tmp_path_factory.mktemp("somebody's") / "environment"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run([*pip(place), "install", "-q", "--no-index", next(packages.glob("*.whl"))], check=True)
    return place


def pip(environment: Path) -> list[Path | str]:
    return [environment / "bin/python", "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(params=["prefix", "environment"])
def place(request: pytest.FixtureRequest) -> Path:
    """Below it the command lies in `bin`."""
    return Path(request.getfixturevalue(request.param))


def test_it_records_reports_and_shows_what_a_shell_does(place: Path, tmp_path: Path) -> None:
    assert call(place, "--version").stdout.startswith("iolab ")
    (tmp_path / "count.sh").write_text("for i in 1 2 3; do echo line $i; done > out.txt; cat out.txt")
    done = call(place, "record", "-o", "run.iot", "--", "sh", "count.sh", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "line 1\nline 2\nline 3\n"), done.stderr
    assert "ERROR" not in done.stderr
    report = call(place, "report", "run.iot", cwd=tmp_path)
    assert report.returncode == 0 and "/out.txt" in report.stdout, report.stdout
    page = call(place, "view", "run.iot", "-o", "run.html", cwd=tmp_path)
    assert page.returncode == 0 and (tmp_path / "run.html").stat().st_size > 10_000
    done = call(place, "run", "--apply", "write-back:paths=**", "--", "sh", "count.sh", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "line 1\nline 2\nline 3\n"), done.stderr
    assert "ERROR" not in done.stderr


def test_a_name_that_the_loader_divides_is_refused_and_a_link_leads_around_it(prefix: Path, tmp_path: Path) -> None:
    divided = tmp_path / "my tools"
    shutil.copytree(prefix, divided)
    for words in (["record", "-o", "run.iot"], ["run", "--apply", "null"], ["env", "--record", "parts"]):
        command = [] if words[0] == "env" else ["--", "touch", "done"]
        done = call(divided, *words, *command, cwd=tmp_path)
        assert done.returncode == 1 and "cannot be preloaded" in done.stderr, done
    assert [it.name for it in tmp_path.iterdir()] == ["my tools"]
    (tmp_path / "link").symlink_to(divided / "lib/iolab")
    environment = {**BARE, "IOLAB_LIBRARY": str(tmp_path / "link/libiolab_intercept.so")}
    command = [divided / "bin/iolab", "record", "-o", "run.iot", "--", "touch", "done"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr
    assert "1 process" in call(prefix, "report", "run.iot", cwd=tmp_path).stdout


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
    options = ["--only", "tar", "--only", "wheel", "--binaries", str(ROOT / "target/debug")]
    assert made(tmp_path, *options).returncode == 0
    sums = (packages / "SHA256SUMS").read_text()
    assert sums == (tmp_path / "SHA256SUMS").read_text()
    for line in sums.splitlines():
        sum, name = line.split()
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == sum
    with tarfile.open(tarball(packages)) as tar:
        assert {(it.uid, it.gid) for it in tar} == {(0, 0)}


def test_recipes_name_the_tarball_beside_them(packages: Path) -> None:
    path = tarball(packages)
    easyconfig = next(packages.glob("*.eb"))
    assert easyconfig.name == f"iolab-{path.name.split('-')[1]}.eb"
    told: dict[str, object] = {"SYSTEM": None}
    exec(easyconfig.read_text(), told)
    assert told["sources"] == [path.name]
    assert told["checksums"] == [hashlib.sha256(path.read_bytes()).hexdigest()]
    container = (packages / "Containerfile").read_text()
    with tarfile.open(path) as tar:
        top = tar.getnames()[0]
    assert f"ADD {path.name} /opt\nENV PATH=/opt/{top}/bin:${{PATH}}" in container


class SpackPackage:
    """What Spack gives a recipe, as far as this one uses it: directives are kept, steps are called by the test."""

    told: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {}

    @staticmethod
    def directives() -> dict[str, object]:
        def directive(name: str) -> object:
            return lambda *words, **more: SpackPackage.told.update({f"{name} {words[0]}": (words, more)})

        def run(program: str) -> object:
            return lambda *words: subprocess.run([program, *words], env=BARE, check=True)

        return {
            **{name: directive(name) for name in ("version", "license", "requires")},
            "install_tree": lambda source, to: shutil.copytree(source, to, dirs_exist_ok=True),
            "run_after": lambda step: lambda function: function,
            "join_path": lambda *parts: str(Path(*parts)),
            "working_dir": contextlib.chdir,
            "Executable": run,
        }


def test_spack_s_recipe_installs_the_tarball_beside_its_repository(
        packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held against what the recipe asks of Spack, which is no package of pip: the real one was not at hand."""
    repository = packages / "spack_repo/iolab"
    assert (repository / "repo.yaml").read_text().splitlines()[1:] == ["  namespace: iolab", "  api: v2.0"]
    builtin = "spack_repo.builtin.build_systems.generic"
    for name, holds in (("spack.package", SpackPackage.directives()), (builtin, {"Package": SpackPackage})):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(parts[end - 1]))
        vars(sys.modules[name]).update(holds)
    recipe = repository / "packages/iolab/package.py"
    code: dict[str, object] = {"__file__": str(recipe), "__name__": "recipe"}
    exec(compile(recipe.read_text(), recipe, "exec"), code)
    package: Any = code["Iolab"]
    path = tarball(packages)
    number = path.name.split("-")[1]
    assert package.url == path.as_uri()
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    assert SpackPackage.told[f"version {number}"] == ((number,), {"sha256": checksum})
    assert f"requires target={platform.machine()}:" in SpackPackage.told
    unpack(path, tmp_path / "stage")
    made = package()
    made.prefix, made.stage = types.SimpleNamespace(bin=tmp_path / "prefix/bin"), types.SimpleNamespace(path=tmp_path)
    with contextlib.chdir(next((tmp_path / "stage").iterdir())):
        made.install(None, tmp_path / "prefix")
    for there in [*package.sanity_check_is_file, *package.sanity_check_is_dir]:
        assert (tmp_path / "prefix" / there).exists(), there
    made.record_a_program()
    assert (tmp_path / "run.iot").exists()


# Crates whose binaries the packages hold: as cargo names them, not as the script that packs them.
PACKAGED = ["iolab-cli", "iolab-intercept", "iolab-mpi", "iolab-hdf5", "iolab-netcdf", "iolab-names", "iolab-python"]


def crates_in(package: str, target: str) -> set[tuple[str, str]]:
    """Name and version of what a crate's binary is made of, as cargo's own tree tells."""
    command = ["cargo", "tree", "--locked", "--edges", "normal", "--package", package, "--target", target,
               "--prefix", "none", "--format", "{p}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {(words[0], words[1].removeprefix("v")) for words in map(str.split, told.splitlines())}


@pytest.mark.skipif("IOLAB_LONG_TESTS" not in os.environ and not shutil.which("cargo-cyclonedx"),
                    reason="cargo-cyclonedx is compiled for it, in minutes: make test-long")
def test_the_bill_of_materials_names_every_crate_and_nothing_of_this_machine(tmp_path: Path) -> None:
    for machine in ("x86_64", "aarch64"):
        done = made(tmp_path, "--only", "bill", "--target", machine)
        assert done.returncode == 0, done.stderr
        path = Path(done.stdout.strip())
        assert (tmp_path / "SHA256SUMS").read_text() == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        text = path.read_text()
        assert str(ROOT) not in text
        bill = json.loads(text)
        components = {(it["name"], it["version"]): it for it in bill["components"]}
        for package in PACKAGED:
            wanted = crates_in(package, f"{machine}-unknown-linux-gnu")
            assert len(wanted) > 5 and wanted - set(components) == set(), package
        assert {it["ref"] for it in bill["dependencies"]} >= {it["bom-ref"] for it in components.values()}
        assert all(it["licenses"] for it in components.values())
    first = path.read_bytes()
    assert made(tmp_path, "--only", "bill", "--target", machine).returncode == 0
    assert path.read_bytes() == first


def test_a_bill_of_several_crates_has_each_part_once_and_all_that_it_needs() -> None:
    def bill(crate: str, scope: str, needs: list[str]) -> dict[str, object]:
        return {
            "metadata": {"component": {"bom-ref": crate, "licenses": ["ours"]}},
            "components": [{"bom-ref": "shared", "scope": scope}, *({"bom-ref": it} for it in needs)],
            "dependencies": [{"ref": crate, "dependsOn": ["shared", *needs]}, {"ref": "shared", "dependsOn": needs}],
        }

    pages = bill_of_materials.of_pages(ROOT)
    assert [(it["name"], it["licenses"]) for it in pages] == [("uplot", [{"expression": "MIT"}])]
    whole = bill_of_materials.joined([bill("one", "excluded", ["a"]), bill("two", "required", ["b"])], "1.2", pages)
    assert [it["bom-ref"] for it in whole["components"]] == ["a", "b", "one", pages[0]["bom-ref"], "shared", "two"]
    assert whole["components"][4]["scope"] == "required"
    needs = {it["ref"]: it["dependsOn"] for it in whole["dependencies"]}
    assert needs["shared"] == ["a", "b"] and needs["iolab@1.2"] == ["one", pages[0]["bom-ref"], "two"]


def test_without_the_tool_for_the_bill_its_name_is_told(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    loader = importlib.machinery.SourceFileLoader("build", str(HERE / "build"))
    build = types.ModuleType(loader.name)
    build.__file__ = str(HERE / "build")
    loader.exec_module(build)
    monkeypatch.setattr(build, "WORK", tmp_path / "work")
    (tmp_path / "cargo").write_text("#!/bin/sh\necho no registry >&2\nexit 101\n")
    (tmp_path / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemExit) as refused:
        build.cyclonedx()  # type: ignore[attr-defined]
    assert "no registry" in capfd.readouterr().err
    assert "cargo install cargo-cyclonedx" in str(refused.value)


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


def test_the_wheel_is_command_package_and_manual_and_goes_again(environment: Path, tmp_path: Path) -> None:
    assert call(environment, "record", "-q", "-o", "run.iot", "--", "sh", "-c", "echo a > f", cwd=tmp_path).returncode == 0
    program = "import iolab; print(iolab.__version__, len(iolab.Trace.load('run.iot')) > 1)"
    told = subprocess.run(
        [environment / "bin/python", "-c", program], cwd=tmp_path, env=BARE, capture_output=True, text=True)
    assert told.stdout == f"{call(environment, '--version').stdout.split()[1]} True\n", told.stderr
    assert (environment / "share/man/man1/iolab-record.1.gz").exists()
    subprocess.run([*pip(environment), "uninstall", "-q", "-y", "iolab"], check=True)
    assert [it for it in environment.rglob("*iolab*") if not it.is_dir()] == []
