"""rooms.py finds what it is there to find, and nothing else, in small made-up trees."""

import unittest

import rooms


def found(**files):
    """Findings in files whose names are paths with __ for / and _dot_ for the last dot."""
    return list(rooms.findings({path.replace("__", "/").replace("_dot_", "."): text for path, text in files.items()}))


class IncludesTest(unittest.TestCase):
    def test_includes_along_the_arrows_are_fine(self):
        self.assertEqual(
            found(
                include__tamis__a_dot_h='#include <vector>\n#include "tamis/types.h"\n',
                include__tamis__libtorch__a_dot_h='#include <torch/types.h>\n#include "tamis/pruner.h"\n',
                src__base__a_dot_cpp='#include <unistd.h>\n#include "base/check.h"\n#include "tamis/types.h"\n',
                src__core__plan__a_dot_cpp='#include "core/memory/b.h"\n#include "base/check.h"\n',
                src__runs__a_dot_cpp='#include <nlohmann/json.hpp>\n#include "runs/b.h"\n',
                src__training__a_dot_cpp='#include <torch/torch.h>\n#include "runs/b.h"\n#include "tamis/libtorch/handler.h"\n',
                src__program__train__a_dot_cpp='#include "training/b.h"\n#include "program/shared/b.h"\n',
                python__src__a_dot_cpp='#include <nanobind/nanobind.h>\n#include "neighbour.h"\n#include "base/check.h"\n',
                tests__core__a_dot_cpp='#include "core/plan/b.h"\n#include <gtest/gtest.h>\n',
            ),
            [],
        )

    def test_every_include_against_the_arrows_is_found(self):
        for path, text in {
            "include/tamis/a.h": '#include "base/check.h"',
            "include/tamis/b.h": "#include <unistd.h>",
            "include/tamis/c.h": '#include "tamis/libtorch/handler.h"',
            "src/base/a.cpp": '#include "core/plan/b.h"',
            "src/core/a.cpp": "#include <torch/torch.h>",
            "src/core/b.cpp": '#include "runs/b.h"',
            "src/runs/a.cpp": "#include <CLI/CLI.hpp>",
            "src/runs/b.cpp": "# include <ATen/ATen.h>",
            "src/libtorch/a.cpp": '#include "training/b.h"',
            "src/libtorch/b.cpp": "#include <fmt/format.h>",
            "src/training/a.cpp": '#include "libtorch/b.h"',
            "src/program/report/a.cpp": '#include "training/b.h"',
            "src/program/shared/a.cpp": '#include "program/train/b.h"',
            "src/program/train/a.cpp": "#include <torch/torch.h>",
            "python/src/a.cpp": '#include "runs/b.h"',
        }.items():
            with self.subTest(path):
                self.assertEqual(len(list(rooms.findings({path: text}))), 1)

    def test_private_headers_of_the_core_are_for_the_core_and_its_tests(self):
        text = '#include "core/plan/b.h"\n'
        for path in ("src/program/a.cpp", "python/src/a.cpp", "tests/program/a.cpp", "benchmarks/a.cpp", "examples/a.cpp"):
            with self.subTest(path):
                self.assertIn("private header of the core", "".join(rooms.findings({path: text})))
        self.assertEqual(found(src__core__a_dot_cpp=text, tests__core__a_dot_cpp=text), [])

    def test_a_finding_names_the_file_and_the_include(self):
        self.assertEqual(
            found(src__core__a_dot_cpp='#include "training/data/b.h"\n'),
            ["src/core/a.cpp: includes training/data/b.h, but src/core/ must not use training"],
        )


class ClassesTest(unittest.TestCase):
    def test_two_classes_of_one_name_are_found(self):
        text = "namespace tamis {{\n{} Block {{ int a; }};\n}}\n"
        self.assertEqual(
            found(src__core__a_dot_h=text.format("class"), src__runs__b_dot_cpp=text.format("struct")),
            ["two classes are called Block: src/core/a.h, src/runs/b.cpp"],
        )

    def test_declarations_nested_classes_and_tests_do_not_count(self):
        self.assertEqual(
            found(
                src__core__a_dot_h="class Block final : public Base<int> { struct Entry { int a; }; };\n",
                src__core__b_dot_h="class Block; struct Other { struct Entry {}; };  // class Block {\n",
                src__core__c_dot_cpp='struct Block::Part { int a; };\nauto s = "class Block {";\n',
                src__core__e_dot_cpp="int f() { struct Block { int a; }; return 0; }\n",
                tests__core__d_dot_cpp="struct Block {};\n",
            ),
            [],
        )


class OldNameTest(unittest.TestCase):
    def test_the_old_name_is_found_in_paths_and_in_texts_whatever_its_case(self):
        old = rooms.OLD_NAME
        files = {f"docs/{old}.md": "", "README.md": f"a\n{old.upper()}_X\n"}
        self.assertEqual(list(rooms.findings(files)), [f"docs/{old}.md: the path has the old name", "README.md:2: the old name"])

    def test_one_line_of_the_changelog_the_constant_and_old_files_may_have_it(self):
        old = rooms.OLD_NAME
        files = {"CHANGELOG.md": f"{old} {old}\n", "src/base/former_name.h": old, "tests/golden/old.json": old}
        self.assertEqual(list(rooms.findings(files)), [])
        self.assertEqual(list(rooms.findings({"CHANGELOG.md": f"{old}\n{old}\n"})), ["CHANGELOG.md:2: the old name"])


if __name__ == "__main__":
    unittest.main()
