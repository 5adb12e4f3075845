"""Writes _parquet/0_0.parquet as recorder2parquet of Recorder 3 does: python make.py (needs pyarrow, whose C++ it is).

Rows are those of the text that `pure/trace/tests/recorder.rs` holds, as rank 0, and one write of rank 1 on two threads.
"""

import re
from pathlib import Path

import pyarrow
import pyarrow.parquet

HERE = Path(__file__).resolve().parent
TEXT = (HERE / "../../pure/trace/tests/recorder.rs").read_text().split('const TEXT: &str = "\\\n')[1].split('";')[0]
NAMES = ["index", "rank", "thread_id", "cat", "tstart", "tend", "func_id", "level", "arg_count"]
ARGUMENTS = [f"args_{number}" for number in range(1, 11)]


def rows():
    for line in TEXT.splitlines():
        start, end, name, level, cat, arguments = re.fullmatch(r"(\S+) (\S+) (\S+) (\d+) (\d+) \( (.*) \)", line).groups()
        yield 0, 77, int(cat), float(start), float(end), name, int(level), arguments.replace("shared file", "shared\0file").split(" ")
    for thread in (12, 11, 12):
        yield 1, thread, 0, 100.0, 100.5, "pwrite", 0, ["/data/a", "0x7ff", "7", "0"]


def table():
    columns = {name: [] for name in NAMES + ARGUMENTS}
    for index, (rank, thread, cat, start, end, name, level, arguments) in enumerate(rows(), 1):
        values = [index, rank, thread, cat, start, end, name, level, len(arguments)]
        values += [word.replace("\0", " ") for word in arguments] + [""] * (10 - len(arguments))
        for column, value in zip(columns.values(), values):
            column.append(value)
    kinds = {"tstart": pyarrow.float32(), "tend": pyarrow.float32(), "func_id": pyarrow.string()}
    kind = {name: kinds.get(name, pyarrow.string() if name in ARGUMENTS else pyarrow.int32()) for name in columns}
    return pyarrow.table({name: pyarrow.array(values, kind[name]) for name, values in columns.items()})


pyarrow.parquet.write_table(table(), HERE / "_parquet/0_0.parquet", compression="none", store_schema=False, row_group_size=1024)
