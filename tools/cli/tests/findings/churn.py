"""Opens the log for each line (`faulty`) or once (`near`)."""

import sys

if sys.argv[1] == "near":
    with open("log", "w") as log:
        for step in range(60):
            log.write(f"step {step}\n")
else:
    for step in range(60):
        with open("log", "a") as log:
            log.write(f"step {step}\n")
