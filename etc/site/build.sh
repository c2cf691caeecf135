#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build.sh TOP BUILD HEADER...: builds the site in BUILD/site/html. Called by `make site`, which sets AWK and VERSION.
# Neither the build nor a reader of the site needs a network.
set -eu
top=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
shift 2

# Debian's packages belong to Debian's Python, which need not be the first on the PATH.
for python in python3 /usr/bin/python3; do
  missing=
  for tool in sphinx:python3-sphinx myst_parser:python3-myst-parser furo:furo breathe:python3-breathe; do
    "$python" -c "import ${tool%:*}" 2>/dev/null || missing="$missing ${tool#*:}"
  done
  [ "$missing" ] || break
done
for tool in doxygen mandoc; do
  command -v $tool >/dev/null || missing="$missing $tool"
done
[ -z "$missing" ] || {
  echo "make site: some tools are missing; install them (Debian and Ubuntu: apt-get install$missing)" >&2
  exit 1
}

site=$build/site
export PYTHONUTF8=1 # whatever the locale
rm -rf "$site"
mkdir -p "$site/source/reference/c" "$site/xml"
cd "$top"
$AWK -v format=rst -v folder="$site/source/reference/c" -v version="$VERSION" -f doc/man/roff.awk -f doc/man/headers.awk "$@"
doxygen -q - <<SETTINGS
INPUT = include/hipmm/cpp include/hipmm/rmm.hpp
FILTER_PATTERNS = "*.hpp=$AWK -f etc/site/doxygen.awk"
STRIP_FROM_PATH = include
FULL_PATH_NAMES = YES
EXTRACT_ALL = YES
ENABLE_PREPROCESSING = NO
EXCLUDE_SYMBOLS = hipmm::detail hipmm::detail::*
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_OUTPUT = $site/xml
XML_PROGRAMLISTING = NO
QUIET = YES
WARN_AS_ERROR = YES
SETTINGS
"$python" etc/site/generate.py "$top" "$build" "$site/source"
export VERSION XML="$site/xml" SITE_SOURCE="$site/source" PAGES="$top/etc/site/pages" PYTHONDONTWRITEBYTECODE=1
"$python" -m sphinx -q -W --keep-going -b html -c etc/site -d "$site/trees" "$site/source" "$site/html"
# Debian's Furo imports a style by a path of a web server of Debian's.
style=$site/html/_static/styles/furo.css
normalize=/usr/share/javascript/normalize.css/normalize.css
[ ! -e $normalize ] || cp $normalize "${style%/*}"
sed -i 's|url(/javascript/normalize.css/normalize.css)|url(normalize.css)|' "$style"
cp "$site/html/README.html" "$site/html/index.html"
"$python" etc/site/links.py "$site/html"
echo "Open in a browser: $site/html/index.html"
