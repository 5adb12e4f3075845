"""Readies what Zig's linker made for old systems, and refuses what they could not load.

    old_systems.py GLIBC NAME FILE…

The file of that name is given `DF_1_INITFIRST`, for which Zig's linker has no option; of all files no
symbol may need a newer glibc. pyelftools reads the formats.
"""

import sys
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

INITFIRST = 0x20


def number(version):
    return tuple(int(part) for part in version.split("."))


def newer(elf, glibc):
    """Versions of glibc's symbols it needs beyond that one."""
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                for version in versions:
                    family, _, wanted = version.name.partition("_")
                    if family == "GLIBC" and wanted[:1].isdigit() and number(wanted) > number(glibc):
                        yield version.name


def set_first(path):
    """Sets the flag in place: the entry is there, since all is bound at start (`-z now`)."""
    with open(path, "r+b") as file:
        elf = ELFFile(file)
        section = next(it for it in elf.iter_sections() if isinstance(it, DynamicSection))
        size = section["sh_entsize"]
        for index, tag in enumerate(section.iter_tags()):
            if tag.entry.d_tag == "DT_FLAGS_1":
                flags = tag.entry.d_val | INITFIRST
                file.seek(section["sh_offset"] + index * size + size // 2)
                file.write(flags.to_bytes(size // 2, "little"))
                return
    sys.exit(f"error: {path} has no entry DT_FLAGS_1 to set a flag in\nhint: was it linked with -z now?")


def main():
    glibc, first, *files = sys.argv[1:]
    for path in map(Path, files):
        with open(path, "rb") as file:
            wanted = sorted(set(newer(ELFFile(file), glibc)))
        if wanted:
            sys.exit(f"error: {path} needs {', '.join(wanted)}\nhint: systems with glibc {glibc} could not load it")
        if path.name == first:
            set_first(path)


if __name__ == "__main__":
    main()
