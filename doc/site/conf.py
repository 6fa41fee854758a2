# SPDX-License-Identifier: BSD-3-Clause
"""The site, by Sphinx with myst-parser.  It is built in a copy of doc/
(doc/site/build.sh), into which the pages that are made from the library and
from spsolve.h, and the plots, are written."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ["SPSOLVE_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "bindings", "python"))
sys.path.insert(0, HERE)

import libspsolve  # noqa: E402

import plots  # noqa: E402

project = "libspsolve"
author = "the authors of libspsolve"
version = release = libspsolve.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "sparse solvers, verified"}
autodoc_member_order = "bysource"
napoleon_google_docstring = False
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]     # of a page that begins below # H1


def options_page():
    """The options as the library describes them."""
    groups = {}
    for o in libspsolve.options().values():
        groups.setdefault(o.group, []).append(o)
    lines = ["# Options", "",
             "By keyword in Python, `-name value` of the command, members of "
             "`sps_options` in C."]
    for group, members in groups.items():
        lines += ["", f"## {group}", "", "| Name | Default | What it does |",
                  "|---|---|---|"]
        for o in members:
            words = ", ".join(f"`{w}`" for w in o.words)
            text = f"{o.help}{': ' + words if words else ''}"
            text = text.replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| `{o.name}` | {o.default} | {text} |")
    return "\n".join(lines) + "\n"


def header_page():
    """spsolve.h, a section for each of its rulers."""
    with open(os.path.join(SOURCE, "lib", "spsolve.h"),
              encoding="utf-8") as f:
        text = f.read()
    parts = re.split(r"\n/\* -{20,} ([\w ]+) \*/\n", text)
    lines = ["# C", "", "`spsolve.h`, which is also `man 3 spsolve`."]
    for name, body in zip(parts[1::2], parts[2::2]):
        body = body.split("\n#ifdef __cplusplus")[0].strip("\n")
        lines += ["", f"## {name[0].upper()}{name[1:]}", "", "```c", body,
                  "```"]
    assert len(parts) > 12
    return "\n".join(lines) + "\n"


for name, page in (("options.md", options_page()),
                   ("reference_c.md", header_page())):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        f.write(page)
plots.draw(HERE)
