# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a wheel contains the licenses of the libraries in it.

Each shared library in it that is not our own has a row in the table of
LICENSES.md and the text of its license in the folder `licenses`, in a file
named as the library; the text holds each license of the row, and none of it is
the GPL without an exception, or CeCILL.

  usage: check_wheel.py WHEEL...
"""
import os
import re
import sys
import zipfile

OURS = {"libspsolve.so", "spsolve_cuda.so"}
LIST = "/LICENSES.md"

# license of the table: what its text says
WORDING = {
    "BSD-3-Clause": r"Redistributions in binary form",
    "BSD-3-Clause-Open-MPI": r"Redistributions in binary form",
    "GPL-3.0-or-later WITH GCC-exception-3.1":
        r"GCC RUNTIME LIBRARY EXCEPTION",
    "Zlib": r"altered source versions",
}


def stem(path):
    """Returns the name of a library without version and hash: libspsolve.so
    for libspsolve/libspsolve.so.0, libz for libz-5af.so.1."""
    return re.sub(r"(-[0-9a-f]+)?\.so(\.\d+)*$", "", os.path.basename(path))


def table(text):
    """Returns {library: licenses}, from the rows `library` | parts |
    licenses of a table."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, flags=re.M)
    return {name: [one.strip() for one in licenses.split(",")]
            for name, licenses in rows}


def faults_of(library, licenses, text):
    if licenses is None:
        return [f"LICENSES.md has no row for {library}"]
    if text is None:
        return [f"licenses/{library}.txt is not in the wheel"]
    faults = [f"{library}: the license {name} may not be carried"
              for name in licenses if name not in WORDING]
    faults += [f"licenses/{library}.txt lacks the text of {name}"
               for name in licenses if name in WORDING and
               not re.search(WORDING[name], text)]
    if re.search("CeCILL", text, re.I):
        faults.append(f"{library} has a part under CeCILL")
    return faults


def faults(path):
    """Returns what is wrong with the wheel, a list of sentences."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()

        def read(end):
            found = [n for n in names if n.endswith(end)]
            return wheel.read(found[0]).decode() if found else None

        rows = table(read(LIST) or "")
        found = [] if rows else ["the wheel has no list LICENSES.md"]
        if not read("/LICENSE"):
            found.append("the wheel has no LICENSE of its own")
        for library in sorted({stem(n) for n in names
                               if re.search(r"\.so(\.\d+)*$", n)}):
            if library + ".so" not in OURS:
                found += faults_of(library, rows.get(library),
                                   read(f"/licenses/{library}.txt"))
    return found


if __name__ == "__main__":
    wrong = [f"{path}: {fault}" for path in sys.argv[1:]
             for fault in faults(path)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong) or len(sys.argv) < 2)
