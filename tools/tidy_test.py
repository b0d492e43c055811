#!/usr/bin/env python3
"""Tests of tidy.py: each rule on a text that breaks it and on one that does not."""

import unittest

import tidy

LAYERS = tidy.parse_layers("""
base:
wire: base        # a comment
process: base
only CLI/: src/cli/options.cc
cli: wire base
""")


def messages(findings) -> list[str]:
    return [finding.message for finding in findings]


def source(path: str, text: str) -> tidy.Source:
    return tidy.Source(path, text)


class Strip(unittest.TestCase):
    def test_blanks_comments_and_literals_and_keeps_positions(self):
        text = 'a("fork("); // fork(\n/* fork(\n */ b(\'"\'); R"x(fork()x";'
        stripped = tidy.strip(text)
        self.assertEqual(len(stripped), len(text))
        self.assertEqual(stripped.count("\n"), text.count("\n"))
        self.assertNotIn("fork", stripped)
        self.assertIn("b(", stripped)

    def test_digit_separators_open_no_literal(self):
        self.assertIn("fork()", tidy.strip("int a = 1'000; fork(); int b = 2'000;"))

    def test_an_escaped_quote_does_not_end_a_literal(self):
        self.assertIn("c;", tidy.strip(r'a("\"fork("); c;'))
        self.assertNotIn("fork", tidy.strip(r'a("\"fork("); c;'))


class Sizes(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(messages(tidy.check_columns(source("src/base/a.cc", "x" * 100))), [])
        self.assertEqual(messages(tidy.check_columns(source("src/base/a.cc", "y\n" + "x" * 101))),
                         ["101 columns, at most 100"])
        self.assertEqual(messages(tidy.check_columns(source("docs/a.md", "x" * 101))), [])

    def test_columns_count_characters(self):
        self.assertEqual(messages(tidy.check_columns(source("src/base/a.cc", "ö" * 100))), [])

    def test_file_lines_depend_on_the_kind(self):
        def found(path, lines):
            return len(messages(tidy.check_file_lines(source(path, "x\n" * lines))))

        self.assertEqual(found("src/base/a.cc", 500), 0)
        self.assertEqual(found("src/base/a.cc", 501), 1)
        self.assertEqual(found("src/base/a.h", 301), 1)
        self.assertEqual(found("src/base/a_test.cc", 1000), 0)
        self.assertEqual(found("src/base/a_test.cc", 1001), 1)
        self.assertEqual(found("docs/long.md", 5000), 0)


class Functions(unittest.TestCase):
    def blocks(self, code):
        return [(block.header, block.first, block.last) for block in tidy.function_blocks(code)]

    def test_free_and_member_functions(self):
        code = "namespace a {\nint F(int x) {\n  if (x) {\n  }\n}\nclass C : public B {\n" \
               "  void G() const {\n  }\n};\n}\n"
        self.assertEqual(self.blocks(code), [("int F(int x)", 2, 5), ("void G() const", 7, 8)])

    def test_member_initialisers_are_no_bodies(self):
        code = "C::C(int a) : a_{a}, b_(a) {\n  f();\n}\n"
        self.assertEqual(self.blocks(code), [("C::C(int a) : a_{a}, b_(a)", 1, 3)])

    def test_data_is_no_function(self):
        self.assertEqual(self.blocks("constexpr int kTable[] = {\n f(1),\n};\nint x{3};\n"), [])

    def test_enum_base_and_return_types(self):
        code = "enum class E : std::uint8_t { kA };\nstruct S* F() {\n}\nauto G() -> int {\n}\n"
        self.assertEqual(self.blocks(code), [("struct S* F()", 2, 3), ("auto G() -> int", 4, 5)])

    def test_templates_and_preprocessor_lines_do_not_hide_a_function(self):
        code = "#define M \\\n  f(a)\n\nnamespace b {\nint E() {\n}\n}\n"
        self.assertEqual(self.blocks(code), [("int E()", 5, 6)])
        code = "#include <a>\ntemplate <class T, class U = V<T>>\nclass X* F(T t) {\n  g();\n}\n" \
               "template <class T>\nstruct Y {\n  Y() = default;\n  int H() { return 1; }\n};\n"
        self.assertEqual(self.blocks(code), [("class X* F(T t)", 3, 5), ("int H()", 9, 9)])

    def test_length_limit_and_marker(self):
        long_body = "void F() {\n" + "  f();\n" * 70 + "}\n"
        self.assertEqual(messages(tidy.check_function_lines(source("src/base/a.cc", long_body))),
                         ["function of 71 lines, at most 70"])
        marked = tidy.FUNCTION_EXEMPTION + "\n" + long_body
        self.assertEqual(messages(tidy.check_function_lines(source("src/base/a.cc", marked))), [])
        short = "void F() {\n" + "  f();\n" * 69 + "}\n"
        self.assertEqual(messages(tidy.check_function_lines(source("src/base/a.cc", short))), [])


class Words(unittest.TestCase):
    def found(self, path, text):
        return len(list(tidy.check_banned_words(source(path, text))))

    def test_each_banned_word_is_found_in_code(self):
        for text in ["fork();", "vfork();", "::clone3(a);", "waitpid(-1, &s, 0);",
                     "::signal(1, f);", "std::system(s);", "std::this_thread::sleep_for(1ms);",
                     "usleep(3);", "t.detach();", "a << std::endl;", "using namespace std;",
                     "#ifdef __linux__", "# if defined(__linux__)", "strerror(e);", "assert(x);",
                     "rand();"]:
            with self.subTest(text):
                self.assertEqual(self.found("src/supervise/a.cc", text), 1)

    def test_look_alikes_are_left_alone(self):
        for text in ["// fork()", 'Fail("fork()");', "pitchfork(x);", "child.signal(9);",
                     "std::signal(SIGPIPE, SIG_IGN);", "static_assert(x);", "asystem(x);",
                     "token->signal(1);", "using namespace std::chrono_literals;",
                     "waitpid(pid, &s, 0);", "#include <thread>"]:
            with self.subTest(text):
                self.assertEqual(self.found("src/supervise/a.cc", text), 0)

    def test_allowed_places(self):
        self.assertEqual(self.found("src/process/launcher.cc", "clone3(&args, size);"), 0)
        self.assertEqual(self.found("tests/workers/hang.cc", "sleep(1000);"), 0)
        self.assertEqual(self.found("tests/integration/a_test.cc", "sleep(1);"), 1)

    def test_texts_that_tie_the_project_to_a_place(self):
        for text in ["see /home" + "/ann/x", "https://py" + "pi.org/simple", "TO" + "DO: later",
                     "cd /work" + "/main"]:
            with self.subTest(text):
                self.assertEqual(len(list(tidy.check_banned_text(source("docs/a.md", text)))), 1)
        for text in ["/homes", "the PyPI package", "a.rootx/root", "/workshop/result.bin"]:
            with self.subTest(text):
                self.assertEqual(list(tidy.check_banned_text(source("docs/a.md", text))), [])


class Includes(unittest.TestCase):
    def found(self, path, line):
        return messages(tidy.check_includes(source(path, line), LAYERS))

    def test_a_layer_sees_itself_and_what_is_named(self):
        self.assertEqual(self.found("src/wire/a.cc", '#include "wire/b.h"'), [])
        self.assertEqual(self.found("src/wire/a.cc", '#include "base/b.h"'), [])
        self.assertEqual(self.found("src/wire/a.cc", "#include <bulkhead/error.h>"), [])

    def test_siblings_and_higher_layers_are_refused(self):
        self.assertEqual(self.found("src/wire/a.cc", '#include "process/b.h"'),
                         ["process/b.h: wire may not include process (tools/layers.txt)"])
        self.assertEqual(len(self.found("src/base/a.h", '#  include "wire/b.h"')), 1)

    def test_unknown_layers_and_bare_names_are_refused(self):
        self.assertEqual(len(self.found("src/new/a.cc", '#include "base/b.h"')), 1)
        self.assertEqual(len(self.found("src/base/a.cc", '#include "a.h"')), 1)
        self.assertEqual(len(self.found("src/base/a.cc", '#include "../base/a.h"')), 1)

    def test_tests_also_see_the_support_folder(self):
        self.assertEqual(self.found("src/wire/a_test.cc", '#include "support/leak_guard.h"'), [])
        self.assertEqual(len(self.found("src/wire/a.cc", '#include "support/leak_guard.h"')), 1)
        self.assertEqual(self.found("tests/e2e/a_test.cc", '#include "wire/b.h"'), [])

    def test_public_headers_stay_public(self):
        path = "include/bulkhead/run.h"
        for line in ["#include <vector>", "#include <bulkhead/error.h>",
                     "#include <tl/expected.hpp>"]:
            self.assertEqual(self.found(path, line), [])
        for line in ['#include "base/a.h"', "#include <fmt/core.h>", "#include <unistd.h>"]:
            self.assertEqual(len(self.found(path, line)), 1)

    def test_confined_libraries(self):
        self.assertEqual(self.found("src/cli/options.cc", "#include <CLI/CLI.hpp>"), [])
        self.assertEqual(len(self.found("src/cli/run.cc", "#include <CLI/CLI.hpp>")), 1)

    def test_cmake_links_no_more_than_the_layers_permit(self):
        def found(text):
            return messages(tidy.check_cmake_layers(source("CMakeLists.txt", text), LAYERS))

        self.assertEqual(found("bh_library(wire DEPS base fmt::fmt)\nbh_library(base)\n"), [])
        self.assertEqual(found("bh_library(process LABELS threads DEPS wire\n  base)"),
                         ["process may not use wire (tools/layers.txt)"])
        self.assertEqual(len(found("bh_library(unheard DEPS base)")), 1)


class Documents(unittest.TestCase):
    def test_messages_must_be_in_the_protocol(self):
        header = source("src/wire/messages.h",
                        "struct Hello {\n  struct Part {\n  };\n};\nstruct Bye {\n};\n")
        protocol = source("docs/protocol.md", "Hello comes first. Goodbye comes last.")
        self.assertEqual(messages(tidy.check_documented([header, protocol])),
                         ["message Bye is not in docs/protocol.md"])
        self.assertEqual(list(tidy.check_documented([header])), [])

    def test_codes_must_be_in_the_outcomes(self):
        code = source("src/base/error.cc",
                      'std::string_view ErrorName(E e) {\n'
                      '  return "not-found";\n  return "io";\n}\n'
                      'std::string_view Other() {\n  return "internal-thing";\n}\n')
        outcomes = source("docs/outcomes.md", "| `io` | a system call failed |")
        self.assertEqual([(f.line, f.message) for f in tidy.check_documented([code, outcomes])],
                         [(2, "code `not-found` is not in docs/outcomes.md")])

    def test_folders_have_short_readmes(self):
        sources = [source("src/a/x.cc", ""), source("src/b/x.cc", ""), source("src/c/x.cc", ""),
                   source("src/b/README.md", "x\n" * 30), source("src/c/README.md", "x\n" * 31)]
        self.assertEqual([f.path for f in tidy.check_readmes(sources)],
                         ["src/a/README.md", "src/c/README.md"])


if __name__ == "__main__":
    unittest.main()
