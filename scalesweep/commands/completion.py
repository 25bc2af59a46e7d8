"""Print a function that completes commands, their options and campaigns in a shell."""

import argparse
import shlex

from scalesweep.commands.interface import COMMANDS, parser_of
from scalesweep.core.paths import CAMPAIGNS, SITES

_FUNCTION = """\
_scalesweep() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$cur"))
        return
    fi
    case "$prev" in
        --site) words=$(_scalesweep_names config/sites {sites}) ;;
        --campaign) words=$(_scalesweep_names config/campaigns {campaigns}) ;;
{choices}
        *)
            case "$cur:${{COMP_WORDS[1]}}" in
{options}
                *:run | *:plan | *:report | *:predict | *:advise | *:history | *:doctor)
                    words=$(_scalesweep_names config/campaigns {campaigns}) ;;
            esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
_scalesweep_names() {{
    local file
    for file in "$1"/*.yaml "$2"/*.yaml; do
        if [ -f "$file" ]; then file=${{file##*/}}; echo "${{file%.yaml}}"; fi
    done
}}
complete -o default -F _scalesweep scalesweep
"""


def run(args: argparse.Namespace) -> None:
    """Print it: for zsh with what lets zsh take a function of bash."""
    if args.shell == "zsh":
        print("autoload -U +X compinit bashcompinit && compinit && bashcompinit")
    parsers = {name: parser_of(name) for name in COMMANDS}
    chosen = {
        f'        {"|".join(action.option_strings)}) words="{" ".join(action.choices or ())}" ;;'
        for parser in parsers.values()
        for action in parser.choosing()
    }
    options = [
        f'                -*:{name}) words="{" ".join(parser.options())}" ;;'
        for name, parser in parsers.items()
    ]
    print(
        _FUNCTION.format(
            commands=" ".join(COMMANDS),
            sites=shlex.quote(f"{SITES}"), campaigns=shlex.quote(f"{CAMPAIGNS}"),
            choices="\n".join(sorted(chosen)), options="\n".join(options),
        ),
        end="",
    )  # fmt: skip
