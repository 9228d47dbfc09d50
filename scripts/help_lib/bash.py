# SPDX-License-Identifier: Apache-2.0
"""Completion in bash: a table of a program's commands and options, and the function that reads it."""

import re

from .keys import Section
from .parse import Command, HelpError, Option

# Placeholders of values that are no files, so nothing is offered for them.
_NUMBERS = re.compile(r"(UINT|INT|FLOAT|SIZE|BYTES|N|X|R|SECONDS|MS)\b")

_SCRIPT = r"""# bash completion for @name@, made from its help.

# _@id@_table "[ COMMAND...] WHAT": what the program has there. WHAT is an option, and what is printed is the kind of
# its value; or it is `commands`, `options`, `rest` (what comes after the options).
_@id@_table() {
  case $1 in
@table@
  esac
}

_@id@_files() {
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
  compopt -o filenames 2>/dev/null
  return 0
}

_@id@() {
  local IFS=$' \t\n'
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command='' skip='' i this kind words
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    this=${COMP_WORDS[i]}
    if [[ $this == = ]]; then  # --option=value is three words
      skip=yes
    elif [[ -n $skip ]]; then
      skip=''
    elif [[ $this == -* ]]; then
      kind=$(_@id@_table "$command $this")
      [[ -n $kind && $kind != flag ]] && skip=yes
    elif [[ " $(_@id@_table "$command commands") " == *" $this "* ]]; then
      command+=" $this"
    elif [[ $(_@id@_table "$command rest") == script ]]; then
      _@id@_files "$word"
      return
    fi
  done
  if [[ $word == = ]]; then
    word=''
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  else
    # The word before is this one's option, or a value, or a flag.
    [[ -n $skip ]] || option=''
  fi
  kind=''
  [[ -n $option ]] && kind=$(_@id@_table "$command $option") && kind=${kind:-text}
  case $kind in
    text) ;;
    file) _@id@_files "$word" ;;
    job) mapfile -t COMPREPLY < <(compgen -W "$(_@id@_jobs)" -- "$word") ;;
    key)
      mapfile -t COMPREPLY < <(compgen -S = -W "$(_@id@_table keys)" -- "$word")
      compopt -o nospace 2>/dev/null
      ;;
    choice*) mapfile -t COMPREPLY < <(compgen -W "${kind#choice }" -- "$word") ;;
    *)
      words=$(_@id@_table "$command commands")
      if [[ $word != -* && -n $(_@id@_table "$command rest") ]]; then
        _@id@_files "$word"
        return
      fi
      [[ $word == -* || -z $words ]] && words=$(_@id@_table "$command options")
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
      ;;
  esac
}
@jobs@
complete -F _@id@ @name@
"""

_JOBS = r"""
# The names of the jobs that run on this node, of the daemon whose socket is given before. A daemon that does not answer
# is not waited for.
_@id@_jobs() {
  local socket=() i
  for ((i = 1; i + 1 < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == --socket && ${COMP_WORDS[i + 1]} != = ]] && socket=(--socket "${COMP_WORDS[i + 1]}")
    [[ ${COMP_WORDS[i]} == --socket && ${COMP_WORDS[i + 1]} == = ]] && socket=(--socket "${COMP_WORDS[i + 2]}")
  done
  timeout 2 "${COMP_WORDS[0]}" "${socket[@]}" status --json 2>/dev/null </dev/null |
    grep -o '"name":"[^"]*","nodes":\[' | sed 's/^"name":"//; s/","nodes":\[$//'
}
"""


def _kind(option: Option, program: str) -> str:
    if not option.value:
        return "flag"
    if option.choices():
        return f"choice {' '.join(option.choices())}"
    if "--job" in option.names:
        return "job"
    if program == "braidd" and "--set" in option.names:
        return "key"
    return "text" if _NUMBERS.match(option.value) or "TEXT:" in option.value else "file"


def _table(program: Command, name: str, sections: list[Section]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for command in program.everything():
        place = "".join(f" {word}" for word in command.words[1:])
        rows.append((f"{place} options", " ".join(n for option in command.options for n in option.names)))
        if command.commands:
            rows.append((f"{place} commands", " ".join(below.words[-1] for below in command.commands)))
        if command.positionals:
            # What stands behind a script's name is the script's own.
            rows.append((f"{place} rest", "script" if "SCRIPT" in command.positionals[0].names else "files"))
        for option in command.options:
            rows += [(f"{place} {one}", _kind(option, name)) for one in option.names]
    if name == "braidd":
        rows.append(("keys", " ".join(key.name for section in sections for key in section.keys)))
    return rows


def script(program: Command, sections: list[Section]) -> str:
    name = program.words[0]
    rows = _table(program, name, sections)
    for key, text in rows:
        if not re.fullmatch(r"[\w .,:+-]*", key + text):
            raise HelpError(f"{name}: '{key}: {text}' has characters that a completion must not have")
    lines = [f"    '{key}') echo '{text}' ;;" for key, text in rows]
    has_jobs = any(text == "job" for _, text in rows)
    # Only braidctl has jobs, and only braidd keys: the other branches then are never taken.
    made = _SCRIPT.replace("@jobs@\n", _JOBS + "\n" if has_jobs else "\n").replace("@table@", "\n".join(lines))
    return made.replace("@id@", name.replace("-", "_")).replace("@name@", name)
