"""The set-up on machines without Rust, with an old one, and without the network.

Each test runs the script in a copy of its own, with a path that has little more than the shell's
tools, and a server of rustup that is a directory.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "bash cat chmod cut dirname grep head id ln mkdir mv rm sed sha256sum sh sort tr uname curl cc python3"
).split()
MACHINE = f"{platform.machine()}-unknown-linux-gnu"

# What rustup does as far as the set-up is concerned, in the places it is told.
RUSTUP = """#!/bin/sh
echo "$@" > "$RUSTUP_HOME.arguments"
while [ "$1" != --default-toolchain ]; do shift; done
bin="$RUSTUP_HOME/toolchains/$2-MACHINE/bin"
mkdir -p "$bin"
printf '#!/bin/sh\\necho "cargo %s (0123456 2026-01-01)"\\n' "$2" > "$bin/cargo"
chmod +x "$bin/cargo"
"""


class Machine:
    """A directory with the project's set-up, a home and a path."""

    def __init__(self, place: Path) -> None:
        self.project, self.tools, self.server = place / "project", place / "bin", place / "server"
        (self.project / "tools/setup").mkdir(parents=True)
        shutil.copy(ROOT / "tools/setup/install", self.project / "tools/setup/install")
        shutil.copy(ROOT / "Cargo.toml", self.project)
        self.tools.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.tools / tool).symlink_to(found)
        self.home = place / "home"
        self.home.mkdir()

    def has_cargo(self, version: str) -> None:
        cargo = self.tools / "cargo"
        cargo.write_text(f"#!/bin/sh\necho 'cargo {version} (0123456 2026-01-01)'\n")
        cargo.chmod(0o755)

    def serves(self, rustup: str, checksum: str | None = None) -> None:
        place = self.server / "dist" / MACHINE
        place.mkdir(parents=True)
        (place / "rustup-init").write_text(rustup)
        made = hashlib.sha256(rustup.encode()).hexdigest()
        (place / "rustup-init.sha256").write_text(f"{checksum or made} *rustup-init\n")

    def set_up(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.project / "tools/setup/install", "study"], capture_output=True, text=True,
            env={"PATH": str(self.tools), "HOME": str(self.home),
                 "RUSTUP_UPDATE_ROOT": self.server.as_uri()})

    @property
    def rust(self) -> Path:
        return self.project / "build/rust"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_new_enough_rust_is_left_alone(machine: Machine) -> None:
    machine.has_cargo("1.89.0")
    done = machine.set_up()
    assert (done.returncode, done.stderr) == (0, "")
    assert not machine.rust.exists()


@pytest.mark.parametrize(("free_kib", "told"), [(1_500_000, "only 1 GiB are free here"), (2_500_000, "")])
def test_a_disk_that_is_too_small_is_told_before_the_first_build(
    machine: Machine, free_kib: int, told: str
) -> None:
    machine.has_cargo("1.89.0")
    disk = machine.tools / "df"
    disk.write_text(f"#!/bin/sh\necho Filesystem\necho '/dev/vda2 90000000 1 {free_kib} 99% /'\n")
    disk.chmod(0o755)
    first = machine.set_up()
    assert first.returncode == 0 and told in first.stderr and bool(first.stderr) == bool(told)
    (machine.project / "target").mkdir()
    assert machine.set_up().stderr == ""


@pytest.mark.parametrize("version", [None, "1.88.0", "0.66.0"])
def test_missing_or_old_rust_comes_into_the_project_only(
    machine: Machine, version: str | None
) -> None:
    if version:
        machine.has_cargo(version)
    machine.serves(RUSTUP.replace("MACHINE", MACHINE))
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert (f"Rust {version} is older than" if version else "there is no Rust") in done.stderr
    assert "into build/rust" in done.stderr
    told = subprocess.run([machine.rust / "bin/cargo"], capture_output=True, text=True).stdout
    assert told.startswith("cargo 1."), told
    arguments = (machine.rust / "rustup.arguments").read_text()
    assert "--no-modify-path" in arguments and "--component clippy" in arguments
    assert os.listdir(machine.home) == []
    # It is found from then on.
    again = machine.set_up()
    assert (again.returncode, again.stderr) == (0, "")


def test_a_damaged_download_is_not_run(machine: Machine) -> None:
    machine.serves(RUSTUP.replace("MACHINE", MACHINE), checksum="0" * 64)
    done = machine.set_up()
    assert done.returncode == 1
    assert "checksum differs" in done.stderr
    assert not (machine.rust / "rustup-init").exists() and not (machine.rust / "rustup").exists()


def test_without_network_one_line_says_what_to_do(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "install Rust 1.89 or newer" in last and machine.server.as_uri() in last


def test_rustup_that_fails_is_told(machine: Machine) -> None:
    machine.serves("#!/bin/sh\necho 'error: no room left' >&2\nexit 1\n")
    done = machine.set_up()
    assert done.returncode == 1
    assert "no room left" in done.stderr and "rustup failed" in done.stderr
    assert not (machine.rust / "bin").exists()
