#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the order of doc/rooms.txt, where its format is explained, with the
objects of the build (nm) and the #include lines.  Run in a build folder with
srcdir set.

   check_rooms.py            fails on calls and includes that are not listed
   check_rooms.py -picture   writes the picture into doc/architecture.md
   check_rooms.py -figures   files and arrows of each room
"""
import os
import re
import subprocess
import sys

SRC = os.environ.get("srcdir", ".")
TOPS = ("lib", "solvers", "kernels", "engines", "tools", "examples")
BY_HAND = "tools/peers"               # built by hand, outside of the library
PUBLIC = "spsolve.h"
SOURCE = (".c", ".cu")
HEADER = (".h", ".cuh")
MOST = 30                             # sources of a room, headers included
APART = "kernels/factor/"             # has names of libc (standins.c)
MODULES = ("kernels/cuda/", "kernels/factor/", "engines/")
MADE = ("registry_host", "registry_cuda", "powers_of_ten")
BEGIN, END = "<!-- rooms: begin -->", "<!-- rooms: end -->"
failures = 0


def fail(text):
    global failures
    print("FAIL:", text)
    failures += 1


def read(path):
    with open(os.path.join(SRC, path), encoding="utf-8") as f:
        return f.read()


def listed():
    """{room: rooms it may call}"""
    allowed = {}
    for line in read("doc/rooms.txt").splitlines():
        if re.match(r"[^#\s]", line):
            room, others = line.split(":")
            if room in allowed:
                fail(f"{room} is listed twice")
            allowed[room] = set(others.split())
    return allowed


def files(tops=TOPS):
    """Source files and headers of all rooms, by their path."""
    found = []
    for top in tops:
        for folder, _, names in os.walk(os.path.join(SRC, top)):
            room = os.path.relpath(folder, SRC)
            found += [f"{room}/{n}" for n in names if room != BY_HAND and
                      n.endswith(SOURCE + HEADER) and
                      not n.startswith(MADE)]
    return sorted(found)


def check_sizes(paths):
    """A room, or a folder of tests, has at most MOST sources and headers."""
    sizes = {}
    for path in paths + files(("tests",)):
        room = os.path.dirname(path)
        sizes[room] = sizes.get(room, 0) + 1
    for room, size in sorted(sizes.items()):
        if size > MOST:
            fail(f"{room} has {size} sources, more than {MOST}")


def check_names():
    """A base name is used by one file and its header only."""
    where = {}
    for top in TOPS + ("tests",):
        for folder, inner, names in os.walk(os.path.join(SRC, top)):
            # A build within the sources makes tests/mpi/mpi.h.
            inner[:] = [f for f in inner if (top, f) != ("tests", "mpi")]
            for name in names:
                stem, ending = os.path.splitext(name)
                if ending in SOURCE + HEADER + (".py", ".sh") and \
                        stem not in MADE:
                    where.setdefault(stem, set()).add(
                        os.path.relpath(folder, SRC))
    for stem, folders in sorted(where.items()):
        if len(folders) > 1:
            fail(f"two files are named {stem}: {' '.join(sorted(folders))}")


def check_readmes(allowed):
    """READMEs are short and name what the room may call as the list does."""
    for room, others in allowed.items():
        if not re.match(r"(lib|kernels/cuda)(/|$)", room):
            continue
        path = f"{room}/README.md"
        if not os.path.exists(os.path.join(SRC, path)):
            fail(f"the room {room} has no README.md")
            continue
        text = read(path)
        if text.count("\n") > 20:
            fail(f"{path} has more than 20 lines")
        use = text[text.find("May use"):text.find("Begin with")]
        if "its rooms" in use or "every room" in use:
            continue
        top = "lib/" if room.startswith("lib") else "kernels/cuda/"
        for to in sorted(others):
            short = to.replace(top, "")
            if f"`{short}`" not in use:
                fail(f"{path} does not say that the room may use {short}")
        for word in re.findall(r"`([^`]+)`", use):
            place = re.sub(r"/([^/]*\.\w+)?$", "", word)
            for to in {place, top + place} & set(allowed) - others - {room}:
                fail(f"{path} claims that the room may use {to}; "
                     "doc/rooms.txt does not list it")


def outside(room):
    return room.startswith(("tools/", "examples"))


def includes(paths):
    """(room, room, header) for each header of another room."""
    there = set(paths)
    for path in paths:
        folder = os.path.dirname(path)
        text = read(path)
        for mark, name in re.findall(r'^\s*#\s*include\s*([<"])([^">]+)', text,
                                     re.M):
            near = os.path.normpath(os.path.join(folder, name))
            for full in (near, name, "lib/" + name, "kernels/" + name):
                if full in there:
                    break
            else:
                if mark == '"':
                    fail(f"{path}: no header {name}")
                continue
            to = os.path.dirname(full)
            if full == "lib/spsolve.h":
                if outside(folder):
                    yield folder, PUBLIC, PUBLIC, path
            elif to != folder:
                yield folder, to, os.path.basename(full), path


def objects(paths):
    """{object file: path of its source}, one for each name"""
    there, found = set(paths), {}
    for top in TOPS:
        for folder, _, names in os.walk(top):
            room = folder.replace("/.libs", "")
            for name in names:
                stem = name[:-2].split("-")[-1]
                for ending in SOURCE:
                    path = f"{room}/{stem}{ending}"
                    if name.endswith(".o") and path in there:
                        found.setdefault((room, name), (folder, path))
                        if folder.endswith(".libs"):
                            found[room, name] = folder, path
    return {f"{folder}/{name}": path
            for (_, name), (folder, path) in found.items()}


def check_objects(paths, objs):
    """What has no object is not seen: no source of the library lacks one."""
    built = set(objs.values())
    absent = tuple(m for m in MODULES if not any(p.startswith(m) for p in built))
    for path in sorted(set(paths) - built):
        if path.endswith(SOURCE) and \
                not path.startswith(("examples/",) + absent):
            fail(f"{path} has no object in this build")


def symbols(objs):
    """{source: names it needs}, {name: source that defines it}"""
    needs, defines = {}, {}
    names = sorted(objs)
    for at in range(0, len(names), 100):
        out = subprocess.run(["nm", "-A", "-g"] + names[at:at + 100], text=True,
                             capture_output=True, check=False).stdout
        for line in out.splitlines():
            m = re.match(r"(.*?):[0-9a-f ]*([A-Za-z]) (\S+)$", line)
            if not m:
                continue
            path = objs[m[1]]
            if m[2] == "U":
                needs.setdefault(path, set()).add(m[3])
            elif m[2] in "TDBRSGC" and not path.startswith(APART):
                defines[m[3]] = path
    return needs, defines


def calls(needs, defines):
    for path, names in needs.items():
        room = os.path.dirname(path)
        for name in names:
            to = os.path.dirname(defines.get(name, path))
            if to == room:
                continue
            if outside(room) and name.startswith("sps_"):
                to = PUBLIC
            yield room, to, name, path


def circles(arrows):
    """Strongly connected components with more than one node (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in arrows.get(v, ()):
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            one = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(one) > 1:
                found.append(sorted(one))

    for v in arrows:
        if v not in number:
            visit(v)
    return found


def floors(allowed):
    """{room: the length of the longest path downwards}"""
    floor = {}

    def of(room):
        if room not in floor:
            floor[room] = 1 + max((of(r) for r in allowed.get(room, ())
                                   if r != PUBLIC), default=-1)
        return floor[room]

    for room in allowed:
        of(room)
    return floor


def picture(allowed):
    """Rooms by floors; what a room may call, without indirect dependencies."""
    floor = floors(allowed)
    below = {}
    for room in sorted(allowed, key=lambda r: floor[r]):
        below[room] = set().union(*(below.get(r, set()) | {r}
                                    for r in allowed[room]), set())
    width = max(map(len, allowed))
    lines = [BEGIN, "```", f"floor  {'room':{width}}  stands on"]
    for room in sorted(allowed, key=lambda r: (-floor[r], r)):
        first = [r for r in sorted(allowed[room]) if not any(
            r in below.get(other, ()) for other in allowed[room])]
        lines.append(f"{floor[room]:5}  {room:{width}}  {'  '.join(first)}"
                     .rstrip())
    return "\n".join(lines + ["```", END])


def check_picture(allowed, write):
    text = read("doc/architecture.md")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < 0:
        fail("doc/architecture.md has no place for the picture")
        return
    new = text[:begin] + picture(allowed) + text[end + len(END):]
    if write:
        with open(os.path.join(SRC, "doc/architecture.md"), "w",
                  encoding="utf-8") as f:
            f.write(new)
    elif new != text:
        fail("the picture in doc/architecture.md is not that of doc/rooms.txt: "
             "make rooms-picture")


def check_arrows(arrows, allowed, cuda):
    used = set()
    for room, to, name, path in arrows:
        used.add((room, to))
        if to in allowed.get(room, ()):
            continue
        what = "includes" if name.endswith(HEADER) else "calls"
        fail(f"{path} {what} {name} of {to}; doc/rooms.txt does not list "
             f"{room}: {to}")
    for room, others in allowed.items():
        for to in sorted(others):
            if (room, to) not in used and (cuda or "cuda" not in room):
                fail(f"doc/rooms.txt lists {room}: {to}, and nothing needs it")


def named():
    """Private functions that the sources of the module name, by macros too."""
    text, macros = "", {}
    for path in files():
        if path.startswith("kernels/cuda/"):
            text += re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
        elif path.endswith(".h"):
            for m in re.finditer(r"#define (\w+)\(((?:.*\\\n)*.*)", read(path)):
                macros[m[1]] = re.findall(r"\bspsi_\w+", m[2])
    words = set(re.findall(r"\w+", text))
    return words.union(*(macros[m] for m in words & set(macros)))


def check_exports(needs, defines):
    """The library exports private functions by name: those that the module and
    spbench need, and no others."""
    text = re.sub(r"/\*.*?\*/", "", read("lib/libspsolve.map"), flags=re.S)
    exported = set(re.findall(r"\bspsi_\w+", text))
    if "spsi_*" in text:
        fail("lib/libspsolve.map exports spsi_*, not names")
    users = [p for p in needs if p.startswith(("kernels/cuda/", "tools/"))]
    cuda = any(p.startswith("kernels/cuda/") for p in users)
    for path in users:
        for name in needs[path]:
            at = defines.get(name, "kernels/cuda/")
            if name.startswith("spsi_") and name not in exported and \
                    not at.startswith(("kernels/cuda/", "tools/", "lib/io/")):
                fail(f"{path} needs {name}, which lib/libspsolve.map does not "
                     "export")
    wanted = set().union(*(needs[p] for p in users), set())
    if not cuda:                       # first the checks of the sources
        wanted |= named()
    for name in sorted(exported - wanted):
        fail(f"lib/libspsolve.map exports {name}, which neither the module nor "
             "spbench needs")


def figures(paths, arrows, needs, defines):
    made = {}
    for room, to, name, _ in arrows:
        made.setdefault((room, to), set()).add(name)
    for room in sorted({os.path.dirname(p) for p in paths}):
        count = sum(os.path.dirname(p) == room for p in paths)
        to = sorted({b for a, b in made if a == room})
        print(f"{room:24} {count:3} files, calls {len(to):2} rooms")
    by_file = {p: {defines[n] for n in names if n in defines} - {p}
               for p, names in needs.items()}
    print(f"{len(by_file)} objects, {sum(map(len, by_file.values()))} arrows, "
          f"between rooms {len(made)}")
    for circle in circles(by_file):
        print(f"circle of {len(circle)}: {' '.join(circle)}")


def main():
    allowed = listed()
    if sys.argv[1:] == ["-picture"]:
        check_picture(allowed, True)
        return failures
    paths = files()
    rooms = {os.path.dirname(p) for p in paths}
    for room in sorted(rooms - set(allowed)):
        fail(f"doc/rooms.txt does not list the room {room}")
    check_sizes(paths)
    for room in sorted(set(allowed) - rooms):
        fail(f"doc/rooms.txt lists {room}, where there is no source")
    check_names()
    check_readmes(allowed)
    objs = objects(paths)
    needs, defines = symbols(objs)
    if not defines:
        print("nm shows no symbols of this build")
        return 1 if failures else 77
    check_objects(paths, objs)
    arrows = list(includes(paths)) + list(calls(needs, defines))
    if sys.argv[1:] == ["-figures"]:
        figures(paths, arrows, needs, defines)
        return failures
    cuda = any("kernels/cuda/" in p for p in objs.values())
    check_arrows(arrows, allowed, cuda)
    check_exports(needs, defines)
    there = circles(allowed)
    for circle in there:
        fail(f"doc/rooms.txt has a circle: {' '.join(circle)}")
    if not there:                      # no picture of floors otherwise
        check_picture(allowed, False)
    if not failures:
        print(f"{len(allowed)} rooms on {1 + max(floors(allowed).values())} "
              f"floors, {len(objs)} objects: good")
    return failures


if __name__ == "__main__":
    result = main()
    sys.exit(result if result == 77 else result > 0)
