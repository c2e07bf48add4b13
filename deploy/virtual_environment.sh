#!/bin/sh
# Make a virtual environment with Python 3.LOWEST to 3.HIGHEST: the given interpreter if its version
# fits, else one on the PATH or of pyenv, else uv's, which downloads it. 3.13 is preferred: every framework that
# runs on Linux has a build for it.
# Usage: sh deploy/virtual_environment.sh FOLDER LOWEST HIGHEST PYTHON
# Exit 1: there is no such Python; the last line is the command that installs one.
folder=$1 lowest=$2 highest=$3 python=$4
[ -x "$folder/bin/python" ] && exit 0

fits() {
    "$1" -c "import sys; sys.exit(not (3, $lowest) <= sys.version_info[:2] <= (3, $highest))" 2>/dev/null
}

pyenv=${PYENV_ROOT:-$HOME/.pyenv}/versions
for candidate in "$python" python3 python3.13 python3.12 python3.11 python3.14 "$pyenv"/*/bin/python; do
    fits "$candidate" || continue
    [ "$candidate" = "$python" ] || echo "$folder: made with $candidate, because $python does not fit."
    "$candidate" -m venv "$folder" && exit 0
    rm -rf "$folder"
    exit 1
done
newest=$([ "$highest" -lt 13 ] && echo "$highest" || echo 13)
if command -v uv >/dev/null 2>&1; then
    echo "$folder: uv makes it with Python 3.$newest."
    exec uv venv --quiet --seed --python "3.$newest" "$folder"
fi
case $(uname -s) in
    Darwin) install="brew install python@3.$newest" ;;
    *) install="pipx install uv" ;;
esac
echo "$folder needs Python 3.$lowest to 3.$highest, and neither $python nor another python3 on the PATH is one. This installs it, or uv, which downloads it; then try again:" >&2
echo "  $install" >&2
exit 1
