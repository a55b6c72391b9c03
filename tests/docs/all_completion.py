"""Makes what `acp-proxy completion` prints: scripts of shtab, which also complete the agent's command after --."""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp_proxy.completion
from acp_proxy.cli.commands import parser
from acp_proxy.completion import SHELLS
from acp_proxy.report import BY
from acp_proxy.setup.known import KNOWN
from acp_proxy.text.times import DAYS

DIRECTORY = Path(acp_proxy.completion.__file__).parent
_FILES = ("FILE", "PATH")  # as options call what they take
_FILE = {"bash": ":", "zsh": "_files", "fish": "FILES"}  # bash offers files where a script offers nothing
_CHOICES = {  # what the parser leaves to others, or takes beside anything else
    "--log-level": ("debug", "info", "warning", "error"),
    "ID": ("last",),
    "KEY": (*BY, *DAYS),
    "acp-proxy setup --agent": tuple(KNOWN),
}
# Said beside each value, where the help of the option lists them all.
_VALUES = {
    "--by": "what each row is of, by default a day",
    "--log-level": "how much is logged, by default warning",
    "acp-proxy setup --agent": "only this one; added if it is not there",
    "EDITOR": "editor",
    "SHELL": "shell",
}

_BASH = """
# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
_acp_proxy() {
  local at
  for (( at = 1; at < COMP_CWORD; at++ )); do
    [[ ${COMP_WORDS[at]} == -- ]] || continue
    if declare -F _comp_command_offset >/dev/null; then
      _comp_command_offset $(( at + 1 ))
    elif declare -F _command_offset >/dev/null; then
      _command_offset $(( at + 1 ))
    elif (( at + 1 == COMP_CWORD )); then
      COMPREPLY=( $(compgen -c -- "${COMP_WORDS[COMP_CWORD]}") )
    else
      COMPREPLY=()
    fi
    return
  done
  _acp_proxy_words
}

# Bash takes a URL or a time apart at its colons, and --by=month at its =.
_acp_proxy_words() {
  local rest=$COMP_LINE words=() at last word option=
  for (( at = 0; at <= COMP_CWORD; at++ )); do
    word=${COMP_WORDS[at]} last=$(( ${#words[@]} - 1 ))
    if [[ $at -gt 0 && $rest != [[:space:]]* && ( $word == [=:]* || ${words[last]} == *[=:] ) ]]; then
      words[last]+=$word
    else
      rest=${rest#"${rest%%[![:space:]]*}"} words+=("$word")
    fi
    rest=${rest#"$word"}
  done
  [[ $word == --*=* ]] && option=${word%%=*}=  # where = is none of COMP_WORDBREAKS
  local COMP_WORDS=()
  for word in "${words[@]}"; do
    if [[ $word == --*=* ]]; then
      COMP_WORDS+=("${word%%=*}" "${word#*=}")
    else
      COMP_WORDS+=("$word")
    fi
  done
  local COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
  _shtab_acp_proxy
  [[ -z $option ]] || COMPREPLY=("${COMPREPLY[@]/#/$option}")
}

complete -o bashdefault -o default -F _acp_proxy acp-proxy
"""
_ZSH = """
# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
# Its name is that of the file from which it may be loaded, whose place it takes then.
_acp-proxy() {
  local end=${words[(ie)--]}
  if (( end < CURRENT )); then
    shift $end words
    (( CURRENT -= end ))
    _normal
  else
    _shtab_acp_proxy "$@"
  fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _acp-proxy "$@"
else
  compdef _acp-proxy acp-proxy
fi
"""
_FISH = """
# After -- stands the agent's command: it is completed as it is without acp-proxy before it.
function _shtab_acp_proxy_using
  contains -- -- (commandline -opc)
  and return 1
  _shtab_acp_proxy_scan
  test "$_shtab_acp_proxy_cmdpath" = "$argv"
end

function _acp_proxy_agent
  set -l typed (commandline -opc)
  set -l before $typed[(math (contains -i -- -- $typed) + 1)..]
  complete -C (string join ' ' -- (string escape -- $before) (commandline -ct))
end

complete -c acp-proxy -n 'contains -- -- (commandline -opc)' -xa '(_acp_proxy_agent)'
"""
_ENDINGS = {"bash": ("\ncomplete -o ", _BASH), "zsh": ("\nif [[ $zsh_eval_context", _ZSH), "fish": ("", _FISH)}
_BETTER = {  # what shtab makes of some options, and what shells take more from
    "zsh": ((r'^(  "--[a-z0-9-]+)(?=\[.*\]:)', r"\1="),),  # also `--config=FILE`
    "fish": ((r'-xka "FILES"', "-rF"),),  # also within quotes, and behind a =
}
_FIRST_LINES = {"zsh": "#compdef acp-proxy\n"}


def main() -> int:
    for shell in SHELLS:
        (DIRECTORY / f"acp-proxy.{shell}").write_text(_made(shell), encoding="utf-8")
    return 0


def mark(shell: str) -> str:
    """A line that is another one where the script was made of other commands or options than there are."""
    made_of = (sorted(_described(parser(complete=True))), _CHOICES, _VALUES, _FILE, _BETTER.get(shell), _ENDINGS[shell])
    return f"# Made by scripts/build-completion, of options {hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}\n"


def _made(shell: str) -> str:
    import shtab  # type: ignore[import-not-found, unused-ignore]  # in the group `completion`

    whole = parser(complete=True)
    _prepare(whole, _FILE)
    text: str = shtab.complete(whole, shell=shell)
    for old, new in _BETTER.get(shell, ()):
        text = re.sub(old, new, text, flags=re.MULTILINE)
    first, begin = _FIRST_LINES.get(shell, ""), text.index("\n\n", text.index("# Usage:"))
    old, ending = _ENDINGS[shell]
    end = text.rindex(old) if old else len(text)
    source = f"# It begins with what shtab {shtab.__version__} makes (https://github.com/tqdm/shtab, Apache-2.0).\n"
    return f"{first}{mark(shell)}{source}\n{text[begin:end].strip()}\n{ending}"


def _prepare(command: argparse.ArgumentParser, file: dict[str, str]) -> None:
    for action in command._actions:
        name = str((*action.option_strings, action.metavar)[0])
        if action.metavar in _FILES:
            action.complete = file  # type: ignore[attr-defined]  # shtab looks for it
        of_command = f"{command.prog} {name}"  # where options of two commands share a name
        action.choices = action.choices or _CHOICES.get(of_command, _CHOICES.get(name))
        action.help = _VALUES.get(of_command, _VALUES.get(name, action.help))
        for each in _below(action):
            _prepare(each, file)


def _described(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        below = _below(action)
        choices = sorted(action.choices) if action.choices else ()
        yield repr((command.prog, action.option_strings, action.metavar, choices, action.nargs, action.help))
        for each in below:
            yield from _described(each)


def _below(action: argparse.Action) -> list[Any]:
    return list(action.choices.values()) if isinstance(action, argparse._SubParsersAction) else []


if __name__ == "__main__":
    sys.exit(main())
