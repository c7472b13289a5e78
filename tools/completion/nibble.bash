# SPDX-License-Identifier: Apache-2.0
# Completion of nibble for bash. It asks the program itself, so that it never lags behind its flags.

_nibble_names() {  # the names of one topic of `nibble list`
  nibble list "$1" --color never 2>/dev/null | awk '/^  [^ ]/ { print $1 }'
}

_nibble() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} help values
  if [ "$COMP_CWORD" -eq 1 ]; then
    help=$(nibble --help 2>/dev/null)
    values=$(awk '/^[A-Z]/ { on = /^Commands:/ } on && /^  [a-z]/ { print $1 }' <<<"$help")
    mapfile -t COMPREPLY < <(compgen -W "$values --help --version" -- "$word")
    return
  fi
  case $before in
    --backend) mapfile -t COMPREPLY < <(compgen -W "$(_nibble_names backends)" -- "$word"); return ;;
    --experiment) mapfile -t COMPREPLY < <(compgen -W "$(_nibble_names experiments)" -- "$word"); return ;;
    --output | --weights) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
  esac
  help=$(nibble "$command" --help 2>/dev/null)
  # "--color auto|always|never": the allowed values stand behind the flag.
  values=$(awk -v flag="$before" '$1 == flag && $2 ~ /[|]/ { gsub(/[|]/, " ", $2); print $2; exit }' <<<"$help")
  if [ -n "$values" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
  elif [ "$command" = list ] && [[ $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "backends experiments formats hypotheses" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(grep -o -- '^  --[a-z-]*' <<<"$help")" -- "$word")
  fi
}

complete -o default -F _nibble nibble
