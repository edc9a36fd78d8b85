#!/bin/sh
# Installs what tests need besides Python, where it is missing and may be installed: Debian's chromium for the journeys
# through the studio, and MariaDB for the equality of engines. Elsewhere those tests are skipped, and this says so.
set -u

wanted() { # NAME OF THE PACKAGE, WHAT FOR, COMMANDS OF WHICH ONE MUST BE THERE
    package=$1 purpose=$2
    shift 2
    for name in "$@"; do
        command -v "$name" >/dev/null 2>&1 && return 0
        test -x "/usr/sbin/$name" && return 0
    done
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "there is no $package: $purpose are skipped (on Debian: apt-get install $package)"
        return 0
    fi
    echo "installing $package for $purpose"
    get="apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $package"
    # a package may ask questions or start its service: neither is wanted
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    $get >/dev/null 2>&1 || { apt-get -qq update >/dev/null 2>&1 && $get >/dev/null 2>&1; } ||
        echo "$package cannot be installed: $purpose are skipped"
}

wanted chromium "journeys in a browser" chromium chromium-browser google-chrome
wanted mariadb-server "tests of MariaDB" mariadbd mysqld
