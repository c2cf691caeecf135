#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Puts debian/ at the top of this source folder, ready for dpkg-buildpackage. The version is that of configure.ac, with this
# Debian's number. The date is that of the commit, or of configure.ac where this is no clone, unless SOURCE_DATE_EPOCH says
# otherwise. DEBFULLNAME and DEBEMAIL name the maintainer of the packages, as for Debian's own tools. HOMEPAGE is the address
# of the project, below which /tags and /issues are, by default that of configure.ac; without one the packages name no address
# and have no watch file.
set -eu
cd "$(dirname "$0")/../../.."
[ "${DEBEMAIL-}" ] || { echo "DEBEMAIL is not set: the packages must name their maintainer's address" >&2; exit 2; }
[ ! -e debian ] || { echo "$PWD/debian is there already; remove it to make it anew" >&2; exit 1; }

maintainer="${DEBFULLNAME:-hipmm contributors} <$DEBEMAIL>"
version=$(sed -n 's/^AC_INIT(\[hipmm], \[\([^]]*\)].*/\1/p' configure.ac)
homepage=${HOMEPAGE:-$(sed -n 's/^AC_INIT(.*\[\(https*:[^]]*\)])$/\1/p' configure.ac)}
seconds=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y configure.ac)}
# shellcheck source=/dev/null
. /etc/os-release

umask 022
cp -r etc/packaging/debian debian
chmod -R u=rwX,go=rX debian # the modes are in the source package, too
rm debian/prepare.sh
if [ "$homepage" ]; then
  sed -i "s|@HOMEPAGE@|$homepage|g" debian/watch debian/upstream/metadata
  sed -i "s|^Standards-Version:.*|&\nHomepage: $homepage|" debian/control
else
  rm -r debian/watch debian/upstream
fi
sed -i "s|@MAINTAINER@|$(printf %s "$maintainer" | sed 's/[\\&|]/\\&/g')|" debian/control
cat >debian/changelog <<CHANGELOG
hipmm ($version-1~deb$VERSION_ID) $VERSION_CODENAME; urgency=medium

  * hipmm $version; its changes are in CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -R -u -d "@$seconds")
CHANGELOG
