//! The scripts of `uverbs completions`, by which a shell asks [`crate::complete`].

use clap::ValueEnum;

/// The shells that have a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// The script that makes a shell ask.
pub(crate) fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Fish => FISH,
        Shell::Zsh => ZSH,
    }
}

// The line is split at blanks, as bash's own words end at each colon. Of a word bash replaces only what
// comes after the last of these, and puts it on the line as it is given: quoted, as a name may come from a snapshot.
const BASH: &str = r#"_uverbs() {
    local line=${COMP_LINE:0:COMP_POINT} words word breaks prefix="" value help
    read -ra words <<<"$line"
    case $line in *[[:blank:]]) words+=("") ;; esac
    word=${words[${#words[@]} - 1]}
    breaks=${COMP_WORDBREAKS//[^:=]/}
    if [ -n "$breaks" ]; then prefix=${word%"${word##*[$breaks]}"}; fi
    COMPREPLY=()
    while IFS=$'\t' read -r value help; do
        case $value/$help in
            @files/*) compopt -o default ;;
            @folders/*) compopt -o dirnames ;;
            *) printf -v value %q "${value#"$prefix"}"; COMPREPLY+=("$value") ;;
        esac
    done < <("$1" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _uverbs uverbs
"#;

const FISH: &str = r"function __uverbs_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        switch $line
            case '@files*'
                __fish_complete_path (commandline -ct)
            case '@folders*'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c uverbs -f -a '(__uverbs_complete)'
";

const ZSH: &str = r#"#compdef uverbs
_uverbs() {
    local -a found
    local value help
    while IFS=$'\t' read -r value help; do
        case $value in
            @files) _files ;;
            @folders) _files -/ ;;
            *) value=${value//\\/\\\\}; found+=("${value//:/\\:}:$help") ;;
        esac
    done < <("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe -V uverbs found; fi
}
if [ "$funcstack[1]" = _uverbs ]; then _uverbs "$@"; else compdef _uverbs uverbs; fi
"#;
