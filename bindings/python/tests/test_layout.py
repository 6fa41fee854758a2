# SPDX-License-Identifier: BSD-3-Clause
"""The structs, enumerations and functions of spsolve.h against those declared
in the package: by the C compiler where it knows them, by the text of the header
where it does not (members behind the last one that fit into its padding,
enumerators that were added, arguments of functions)."""
import ctypes
import os
import re
import shutil
import subprocess

import pytest

from libspsolve import _library, _structs

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, "..", "..", "..", "lib", "spsolve.h")
CC = os.environ.get("CC", "cc").split()

pytestmark = [
    pytest.mark.skipif(not os.path.exists(HEADER), reason="no spsolve.h"),
    pytest.mark.skipif(not shutil.which(CC[0]), reason="no C compiler"),
]


@pytest.fixture(scope="module")
def header():
    with open(HEADER, encoding="utf-8") as f:
        text = f.read()
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def program(structs, enums):
    """Returns the text of a C program that prints the sizes of the structs,
    offset and size of each member, and the enumerators."""
    lines = ["#include <stdio.h>", "#include <spsolve.h>",
             "int main(void) {"]
    for name, struct in structs:
        lines.append(f'printf("sizeof {name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field[0]} %zu %zu\\n", '
                  f'offsetof({name}, {field[0]}), '
                  f'sizeof((({name} *)0)->{field[0]}));'
                  for field in struct._fields_]
    for _, prefix, enum in enums:
        lines += [f'printf("{prefix}{e.name} %d\\n", (int){prefix}{e.name});'
                  for e in enum]
    return "\n".join(lines + ["return 0; }"])


def expected(structs, enums):
    lines = []
    for name, struct in structs:
        lines.append(f"sizeof {name} {ctypes.sizeof(struct)}")
        lines += [f"{name}.{field[0]} {getattr(struct, field[0]).offset} "
                  f"{getattr(struct, field[0]).size}"
                  for field in struct._fields_]
    for _, prefix, enum in enums:
        lines += [f"{prefix}{e.name} {int(e)}" for e in enum]
    return lines


def compiled(text, folder, include):
    source, run = str(folder / "layout.c"), str(folder / "layout")
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(CC + ["-I", include, source, "-o", run], check=True)
    return subprocess.run([run], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.splitlines()


def test_the_compiler_lays_structs_and_enums_out_alike(tmp_path):
    text = program(_structs.STRUCTS, _structs.ENUMS)
    got = compiled(text, tmp_path, os.path.dirname(HEADER))
    assert got == expected(_structs.STRUCTS, _structs.ENUMS)


def test_a_moved_member_and_a_changed_number_are_seen(tmp_path):
    with open(HEADER, encoding="utf-8") as f:
        text = f.read()
    text = text.replace("    int restarts;               /**< residual",
                        "    int64_t restarts;           /**< residual")
    text = text.replace("X(STAGNATED, -3,", "X(STAGNATED, -33,")
    (tmp_path / "spsolve.h").write_text(text, encoding="utf-8")
    got = compiled(program(_structs.STRUCTS, _structs.ENUMS), tmp_path,
                   str(tmp_path))
    other = set(got) ^ set(expected(_structs.STRUCTS, _structs.ENUMS))
    names = {line.split()[0] for line in other}
    assert {"sps_result.restarts", "SPS_STOP_STAGNATED"} <= names


def members(header, name):
    """Returns the names of the members of a struct, in their order."""
    body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (name, name),
                     header, re.S)
    assert body, name
    found = []
    for line in body[1].split(";"):
        if "(*" in line:
            found.append(re.search(r"\(\*(\w+)\)", line)[1])
        elif line.strip():
            found += re.findall(r"(\w+)\s*(?:\[\d+\])?\s*(?:,|$)",
                                line.strip())
    return found


@pytest.mark.parametrize("name, struct", _structs.STRUCTS)
def test_no_member_is_missing(header, name, struct):
    assert members(header, name) == [f[0] for f in struct._fields_]


def enumerators(header, name):
    if name in ("sps_status", "sps_stop"):
        macro = re.search(r"#define SPS_%s_LIST\(X\)(.*?)\n\n" %
                          name[4:].upper(), header, re.S)
        prefix = "SPS_" if name == "sps_status" else "SPS_STOP_"
        return {prefix + word for word in re.findall(r"X\((\w+),", macro[1])}
    if name:
        body = re.search(r"typedef enum %s \{(.*?)\}" % name, header, re.S)
    else:
        body = re.search(r"\nenum \{(.*?)\}", header, re.S)
    return set(re.findall(r"(SPS_\w+)\s*=", body[1]))


@pytest.mark.parametrize("name, prefix, enum", _structs.ENUMS)
def test_no_enumerator_is_missing(header, name, prefix, enum):
    assert enumerators(header, name) == {prefix + e.name for e in enum}


# What the package has no use for: options are set by name, files are read by
# others, and processes do not solve together here yet.
UNBOUND = {"sps_message", "sps_comm_calls", "sps_allocator", "sps_read_options",
           "sps_read_info", "sps_laplacian_info", "sps_options", "sps_norm"}


def test_every_struct_and_enum_is_bound_or_known_not_to_be(header):
    declared = set(re.findall(r"typedef (?:struct|enum) (\w+) \{", header))
    bound = {entry[0] for entry in _structs.STRUCTS + _structs.ENUMS} - {""}
    assert len(bound) > 10 and declared == bound | UNBOUND


ENUM_TYPES = {"sps_status", "sps_stop", "sps_place", "sps_dtype", "sps_order",
              "sps_own", "sps_norm", "sps_option_type"}
SCALARS = {"int": ctypes.c_int, "int64_t": ctypes.c_int64,
           "double": ctypes.c_double, "size_t": ctypes.c_size_t,
           "unsigned": ctypes.c_uint, "bool": ctypes.c_bool}
CALLBACKS = {"sps_apply_fn": _library.Apply, "sps_monitor_fn": _library.Monitor}


def fits(declared, used):
    """Returns whether an argument declared as `declared` in C may be passed
    as `used`."""
    declared = declared.replace("const ", "").strip()
    if declared.endswith("*"):
        if declared == "char *":
            return used is ctypes.c_char_p
        return used is ctypes.c_void_p or hasattr(used, "contents")
    if declared in ENUM_TYPES:
        return used is ctypes.c_int
    if declared in CALLBACKS:
        return used is CALLBACKS[declared]
    return used is SCALARS[declared]


def prototype(header, name):
    """Returns the types of result and arguments of a function."""
    found = re.search(r"\n([\w ]+?[ *]+)%s\(([^;]*?)\);" % name, header, re.S)
    assert found, f"{name} is not declared"
    types = []
    for argument in re.sub(r"\s+", " ", found[2]).split(","):
        argument = argument.strip()
        if argument != "void":
            types.append(re.match(r"(.*?)\w+$", argument)[1].strip())
    return found[1].strip(), types


@pytest.mark.parametrize("name", sorted(_library.PROTOTYPES))
def test_functions_are_declared_alike(header, name):
    result, types = prototype(header, name)
    used_result, used = _library.PROTOTYPES[name]
    assert len(types) == len(used), name
    for declared, one in zip(types, used):
        assert fits(declared, one), (name, declared, one)
    if result == "void":
        assert used_result is None
    else:
        assert fits(result, used_result), (name, result, used_result)


@pytest.mark.parametrize("name, callback", sorted(CALLBACKS.items()))
def test_callbacks_are_declared_alike(header, name, callback):
    found = re.search(r"typedef (\w+) \(\*%s\)\(([^;]*?)\);" % name, header,
                      re.S)
    types = [re.match(r"(.*?)\w+$", a.strip())[1].strip()
             for a in re.sub(r"\s+", " ", found[2]).split(",")]
    assert fits(found[1], callback._restype_)
    assert len(types) == len(callback._argtypes_)
    assert all(map(fits, types, callback._argtypes_))
