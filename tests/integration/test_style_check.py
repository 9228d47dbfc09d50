# SPDX-License-Identifier: Apache-2.0
"""scripts/style-check finds two types of one name, names that two files of a room have for themselves, functions and
classes that are too long, includes that go against the dependencies between rooms, and circles of Python's imports."""

import shutil
import subprocess

import pytest
from braid_build import REPOSITORY, ran

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
CHECKS = (
    "cpp_scopes", "defects", "log_lines", "own_names", "python_imports", "rooms", "sentences", "sizes", "std_includes",
    "type_names",
)  # fmt: skip
HEADER = """namespace braid {
class Partition final {
  struct Part { int x; };
};
enum class Colour : unsigned char { Red };
}  // namespace braid
"""


@pytest.fixture
def checked(tmp_path):
    """Runs style-check over these files in a repository of its own; returns its exit status and what it says."""
    (tmp_path / "scripts" / "check_lib").mkdir(parents=True)
    for name in ("style-check", *(f"check_lib/{name}.py" for name in CHECKS)):
        shutil.copy2(REPOSITORY / "scripts" / name, tmp_path / "scripts" / name)
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)

    def run(*rooms, **files):
        for path, text in rooms:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(LICENCE + text)
        result = ran([str(tmp_path / "scripts" / "style-check")])
        return result.returncode, result.stdout
    return run


def test_two_types_of_one_name(checked):
    other = "/* { */ namespace braid {\nconst char* s = \"{\"; // {\nclass [[nodiscard]] Partition : public A {};\n}\n"
    code, said = checked(a_h=HEADER, b_h=other)
    assert code == 1
    assert "b.h:4: type braid::Partition is also defined in a.h:3" in said.splitlines()


@pytest.mark.parametrize("other", [
    "namespace braid::client {\nclass Partition {};\n}\n",  # another namespace
    "namespace braid {\nclass Partition;\nstruct Other {\n  struct Partition {};\n};\n}\n",  # declared; nested
    "namespace braid {\ntemplate <>\nstruct Hash<Partition> {};\n// class Partition {\n}\n",  # neither is one
])
def test_what_is_no_second_type(checked, other):
    code, said = checked(a_h=HEADER, b_cpp=other)
    assert code == 0, said


LINE = "  ++x;\n"
TOO_LONG = "a function of 61 lines: find the second idea in it, 60 are the most"


@pytest.mark.parametrize("text, line", [
    ("void f()\n{\n@}\n", 3),  # from its brace on
    ("namespace a {\nstruct B {\n  B() : x{0}, y(1) {\n@  }\n  int x;\n};\n}\n", 4),
])
@pytest.mark.parametrize("inside", ["{}", "  run([&] {{\n{}  }});\n"])
@pytest.mark.parametrize("lines", [60, 61])
def test_a_long_function(checked, text, line, inside, lines):
    fill = inside.format(LINE * (lines - 2 - inside.count("\n")))  # a lambda counts with its function
    code, said = checked(a_cpp=text.replace("@", fill))
    assert code == (lines > 60), said
    assert (f"a.cpp:{line}: {TOO_LONG}" in said.splitlines()) == (lines > 60)


@pytest.mark.parametrize("lines", [300, 301])
def test_a_long_class(checked, lines):
    code, said = checked(a_h="class A final : public B {\n" + "  int f();\n" * (lines - 2) + "};\n")
    assert code == (lines > 300), said
    assert ("a.h:2: a class of 301 lines: find the second idea in it, 300 are the most" in said) == (lines > 300)


WHOLE = """namespace braid::net {
class Peer {
 public:
  Peer();
  int f() const;
};
}  // namespace braid::net
"""


# And the declaration has 5 lines.
@pytest.mark.parametrize("lines", [395, 396])
@pytest.mark.parametrize("head", [
    "int Peer::f() const {",
    "Peer::Peer()\n    : Base(1), list_{1, 2},\n      other_{}, last_(move(3)) {",
    "template <typename Item>\nvoid Peer<Item>::add(Item item) {",
])
def test_a_class_that_is_long_with_its_functions(checked, head, lines):
    other = "namespace braid {\nint Peer::g() {\n" + LINE * 50 + "}\n}\n"  # of another namespace
    functions = [60] * (lines // 60) + [lines % 60]
    part = "namespace braid::net {{\n\n{}\n{}}}\n}}\n"
    parts = {f"f{i}_cpp": part.format(head, LINE * (size - 2)) for i, size in enumerate(functions)}
    code, said = checked(a_h=WHOLE, b_cpp=other, **parts)
    told = "a.h:3: braid::net::Peer has 401 lines with its functions: find the second idea in it, 400 are the most"
    assert (code, told in said.splitlines()) == ((1, True) if lines == 396 else (0, False)), said


def test_a_long_python_function(checked, tmp_path):
    for name, lines in (("long.py", 61), ("short.py", 60)):
        text = "# SPDX-License-Identifier: Apache-2.0\n@cached\ndef f(x):\n" + "    x += 1\n" * (lines - 1)
        (tmp_path / name).write_text(text)
    code, said = checked()
    assert code == 1
    assert [line for line in said.splitlines() if TOO_LONG in line] == [f"long.py:3: {TOO_LONG}"]


def room(name, *links):
    return (f"src/{name}/CMakeLists.txt",
            f"# SPDX-License-Identifier: Apache-2.0\nadd_library(braid_{name} STATIC {name}.cpp)\n"
            f"target_link_libraries(braid_{name} PUBLIC {' '.join(f'braid_{link}' for link in links)})\n")


def test_a_type_in_a_class_that_hides_one_of_a_room_it_knows(checked):
    text = f"{LICENCE}namespace braid {{\nclass Other {{\n  struct Partition {{}};\n}};\n}}\n"
    rooms = [room("base"), room("loop", "base"), room("net", "loop")]
    code, said = checked(*rooms, ("src/base/a.h", LICENCE + HEADER), ("src/net/other.cpp", text))
    assert code == 1
    hides = "src/net/other.cpp:4: type Other::Partition hides braid::Partition, which is defined in src/base/a.h:3"
    assert hides in said.splitlines()


OWN = """namespace braid {
namespace {
constexpr unsigned kTimeoutMs = unsigned{16} << 3;  // kOther = 1;
template <typename T>
double seconds(const T& value, size_t count = 1) {
  return f(value) + count;
}
}  // namespace
}  // namespace braid
"""


def own(declaration):
    return LICENCE + f"namespace braid {{\nnamespace {{\n{declaration}\n}}\n}}\n"


@pytest.mark.parametrize("declaration, name", [
    ("const char* const kTimeoutMs[] = {\n    \"a\",\n};", "kTimeoutMs"),
    ("double seconds(const T& other,\n               size_t) {\n}", "seconds"),
])
def test_a_name_that_two_files_of_a_room_have_for_themselves(checked, declaration, name):
    line = 4 if name == "kTimeoutMs" else 5
    code, said = checked(("src/a/one.cpp", LICENCE + OWN), ("src/a/two.cpp", own(declaration)))
    assert code == 1
    assert f"src/a/two.cpp:4: '{name}' is also a name of its own in src/a/one.cpp:{line}:" in said


@pytest.mark.parametrize("path, declaration", [
    ("src/b/two.cpp", "constexpr int kTimeoutMs = 1;"),  # another room
    ("src/a/main.cpp", "constexpr int kTimeoutMs = 1;"),  # a target of its own
    ("src/a/two.cpp", "double seconds(int nanoseconds) {\n}"),  # an overload
])
def test_names_that_do_not_meet(checked, path, declaration):
    code, said = checked(("src/a/one.cpp", LICENCE + OWN), (path, own(declaration)))
    assert code == 0, said


USES_STRING = "std::string name();  // std::map\n"


@pytest.mark.parametrize("includes, is_right", [
    ("", False),
    ("#include <string>\n", True),
    ('#include "base/other.h"\n', False),  # a header does not leave it to another
])
def test_a_header_includes_what_it_uses(checked, includes, is_right):
    other = ("src/base/other.h", LICENCE + "#include <string>\n")
    code, said = checked(other, ("src/base/a.h", LICENCE + includes + USES_STRING))
    line = 2 + includes.count("\n")
    assert (f"src/base/a.h:{line}: std::string needs #include <string>" in said.splitlines()) is not is_right
    assert code == (0 if is_right else 1), said


def test_a_source_gets_names_from_our_headers(checked):
    headers = [("src/base/near.h", LICENCE + '#include "far.h"\n'), ("src/base/far.h", LICENCE + "#include <string>\n")]
    good = ("src/net/good.cpp", LICENCE + '#include "base/near.h"\n' + USES_STRING)
    bad = ("src/net/bad.cpp", LICENCE + "#include <vector>\n" + USES_STRING)
    code, said = checked(*headers, good, bad)
    assert code == 1
    assert [line for line in said.splitlines() if "#include" in line] == [
        "src/net/bad.cpp:3: std::string needs #include <string>"
    ]


def test_an_include_against_the_dependencies(checked):
    rooms = [room("base"), room("loop", "base"), room("net", "loop")]
    far = ("src/net/net.cpp", LICENCE + '#include "base/fd.h"\n')
    code, said = checked(*rooms, far, ("src/base/base.cpp", LICENCE + '#include "net/flow.h"\n'))
    assert code == 1
    assert [line for line in said.splitlines() if "depend" in line] == [
        "src/base/base.cpp:2: room 'base' does not depend on 'net'"
    ]


def test_rooms_that_depend_on_each_other(checked):
    code, said = checked(room("base", "net"), room("loop", "base"), room("net", "loop"))
    assert code == 1
    assert "src/net/CMakeLists.txt:1: room 'net' depends on itself, through others" in said.splitlines()


@pytest.mark.parametrize("path, line, said_of", [
    ("src/a/a.cpp", "BRAID_LOG_WARN(\"job '{}' failed\", name);", "job"),
    ("src/a/a.cpp", "BRAID_LOG_WARN(LogFields{.job = label}, \"job '{}' failed\", name);", None),
])
def test_log_lines_say_whose_job_they_are_about(checked, path, line, said_of):
    code, said = checked((path, f"{LICENCE}void f() {{\n{line}\n}}\n"))
    assert code == (said_of is not None), said
    assert (f"{path}:3: this log line names a {said_of} and does not say whose" in said) == (said_of is not None)


def python_files(**texts):
    files = {"python/a/__init__.py": "", **{f"python/a/{name}.py": text for name, text in texts.items()}}
    return [(path, f"# SPDX-License-Identifier: Apache-2.0\n{text}") for path, text in files.items()]


@pytest.mark.parametrize("back", [
    "from a import one",
    "from .one import x",
    "def late():\n    import a.one",
])
def test_python_modules_that_import_each_other(checked, back):
    code, said = checked(*python_files(one="from a.two import y\n", two=f"x = 1\n{back}\n"))
    assert code == 1
    assert "python/a/one.py:2: modules import each other in a circle: a.one → a.two → a.one" in said.splitlines()


def test_python_folders_that_import_each_other(checked):
    code, said = checked(*python_files(**{
        "p/one": "from a.q.two import x\n", "q/two": "x = 1\n", "q/three": "def f():\n    import a.p.four\n",
        "p/four": "",
    }))  # fmt: skip
    assert code == 1
    assert "python/a/p/one.py:2: folders import each other in a circle: python/a/p → python/a/q → python/a/p" in said


@pytest.mark.parametrize("path, text, line", [
    ("docs/page.md", "A guard is for " + "who" + "ever asks.\n", 1),
    ("docs/page.md", "# Words\n\nOf each size the median counts.\n", 3),
    ("docs/page.md", "It ends. Of these, none stays.\n", 1),
    ("docs/page.md", "| a | Of several the first counts |\n", 1),
    ("docs/page.md", "word " * 20 + "words\n", 1),
    ("src/loop/a.h", LICENCE + "// Ends it.\n//\n// Of two, the first.\nint f();\n", 4),
    ("client/include/a.h", LICENCE + "/** Waits.\n * Of this rank only. */\nint f();\n", 3),
    ("scripts/a.py", f"# {LICENCE[3:]}def f():\n    \"\"\"Of one group.\"\"\"\n", 3),
])
def test_a_sentence_that_must_be_read_twice(checked, path, text, line):
    code, said = checked((path, text))
    assert code == 1
    assert [one.split(" ")[0] for one in said.splitlines() if one.startswith(path)] == [f"{path}:{line}:"], said


@pytest.mark.parametrize("path, text", [
    ("docs/page.md", "The sum of all parts\nOf Mice and Men\n"),  # a name that a line happens to begin with
    ("docs/page.md", "```\n" + "Of what? " * 20 + "\n```\n"),  # code
    ("docs/page.md", "| " + "a table's row may be long " * 10 + "|\n"),
    ("docs/page.md", "<!-- keys: begin -->\n" + "word " * 30 + "\n<!-- keys: end -->\n"),  # written from the code
    ("daemon/a.cpp", LICENCE + "const char* f() { return \"Of one loop.\"; }\n"),
])
def test_sentences_that_are_read_once(checked, path, text):
    code, said = checked((path, text.replace(" \n", "\n")))
    assert code == 0, said


DEFECT = """What: the wrong number is returned
Found by: unit a_test --gtest_filter=F.IsOne

--- a/src/a/a.cpp
+++ b/src/a/a.cpp
@@ -1,2 +1,2 @@
 // SPDX-License-Identifier: Apache-2.0
-int f() { return 1; }
+int f() { return 2; }
"""


@pytest.mark.parametrize("before, after, found", [
    ("", "", None),
    ("int f() { return 1; }", "int f() { return 3; }", "no longer applies"),
    ("What: the wrong number is returned\n", "", "'What: …' is missing"),
    ("Found by: unit", "Found by: somebody in", "Found by: 'somebody in a_test"),
    ("F.IsOne", "F.IsTwo", "there is no test 'IsTwo'"),
    ("\n\n", "\nRow: a cable\n\n", "Row: 'a cable'"),
    ("b/src/a/a.cpp", "b/tests/a.cpp", "a defect changes files of src/"),
    ("+int f() { return 2; }\n", "+int f() {\n+  return 2;\n+}\n+\n+\n+\n", "more than 5 lines with '+'"),
])
def test_patches_of_defects(checked, before, after, found):
    patch = DEFECT.replace(before, after, 1)
    code, said = checked(
        ("src/a/a.cpp", f"{LICENCE}int f() {{ return 1; }}\n"), ("tests/a_test.py", f"#{LICENCE[2:]}# F.IsOne\n"),
        ("tests/defects/d.patch", patch),
    )  # fmt: skip
    assert code == (found is not None), said
    lines = [line for line in said.splitlines() if line.startswith("tests/defects/d.patch:")]
    assert found is None or any(found in line for line in lines), said
