import netCDF4
import numpy as np

with netCDF4.Dataset("out.nc", "w") as file:
    file.createDimension("row", 64)
    file.createDimension("column", 256)
    plain = file.createVariable("plain", "f8", ("row", "column"), contiguous=True)
    plain[:] = np.arange(64 * 256).reshape(64, 256)
    chunked = file.createVariable("in chunks", "f8", ("row", "column"), chunksizes=(16, 32))
    for i in range(64):
        chunked[i, :] = i
    chunked.units = "K"
with netCDF4.Dataset("out.nc") as file:
    print(file["plain"][1, 3], file["in chunks"][5, 7], file["in chunks"].units)
    try:
        file["missing"]
    except IndexError as error:
        print(error)
