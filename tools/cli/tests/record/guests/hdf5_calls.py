import h5py
import numpy as np

with h5py.File("out.h5", "w") as file:
    group = file.create_group("group")
    group.create_dataset("plain", data=np.arange(64 * 256, dtype="f8"))
    chunked = file.create_dataset("in chunks", (64, 256), dtype="f8", chunks=(16, 32))
    for i in range(64):
        chunked[i, :] = i
    chunked.attrs["unit"] = 7
with h5py.File("out.h5", "r") as file:
    print(file["group/plain"][256 + 3], file["in chunks"][5, 7], file["in chunks"].attrs["unit"])
    try:
        file["missing"]
    except KeyError as error:
        print(error)
