# What every finding begins with: a temporary directory that is removed, with a Python of its own.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

install() { # pinned packages from PyPI
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

python() { env -u PYTHONPATH .venv/bin/python "$@"; }

expect() { # a description, what is expected, and what was seen
    printf '%s: %s\n' "$1" "$3"
    if [ "$2" != "$3" ]; then
        printf 'CHANGED: expected %s\n' "$2"
        exit 1
    fi
}
