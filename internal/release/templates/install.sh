#!/bin/sh
# Installs Belay @VERSION@ for this user, or for everybody with PREFIX=/usr/local. It downloads one archive and the list of
# checksums, compares them, and copies the program, its man pages and its completions. It changes no start-up file.
#
#   PREFIX        where to install; default ~/.local
#   INSTALL_FROM  where the files are: an address, or a directory with the files of the release
set -eu

# The last line calls main: half a script does nothing.
main() {
  umask 022 # everybody may read what is installed, whatever the umask of this shell is
  version=@VERSION@
  from=${INSTALL_FROM:-@FROM@}
  prefix=${PREFIX:-$HOME/.local}
  case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac

  fail() { echo "install: $1" >&2; exit 1; }

  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no archive for $(uname -s) here: see $from" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no program for $(uname -m)" ;;
  esac
  name=belay_${version}_${system}_${arch}

  case $from in https://*) command -v curl > /dev/null || fail "curl is missing: install it, or download $name.tar.gz and checksums.txt, and set INSTALL_FROM to their directory" ;; esac
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  fetch() {
    case $from in
      https://*) curl --proto '=https' --proto-redir '=https' --fail --silent --show-error --location --output "$work/$1" "$from/$1" || fail "cannot fetch $from/$1" ;;
      *://*) fail "$from is no https:// address" ;;
      *) cp "$from/$1" "$work/$1" || fail "there is no $from/$1" ;;
    esac
  }
  fetch checksums.txt
  fetch "$name.tar.gz"

  # The list has one line for this archive, and the archive must match it.
  cd "$work"
  grep "  $name.tar.gz\$" checksums.txt > wanted || fail "checksums.txt does not list $name.tar.gz"
  if command -v sha256sum > /dev/null; then sha256sum -c wanted > /dev/null 2>&1; else shasum -a 256 -c wanted > /dev/null 2>&1; fi ||
    fail "the archive does not match its checksum: nothing was installed"

  tar -xzf "$name.tar.gz"
  mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
  cp "$name"/man/*.1 "$prefix/share/man/man1/"
  cp "$name/completions/belay.bash" "$prefix/share/bash-completion/completions/belay"
  cp "$name/completions/_belay" "$prefix/share/zsh/site-functions/_belay"
  cp "$name/completions/belay.fish" "$prefix/share/fish/vendor_completions.d/belay.fish"
  { cp "$name/belay" "$prefix/bin/belay.new" && mv "$prefix/bin/belay.new" "$prefix/bin/belay"; } || # a running belay keeps its file
    { rm -f "$prefix/bin/belay.new"; fail "cannot write $prefix/bin/belay: the program was not installed"; }

  "$prefix/bin/belay" version
  case :$PATH: in
    *:"$prefix/bin":*) echo "Try it: belay demo" ;;
    *) echo "Add $prefix/bin to PATH, then try: belay demo" ;;
  esac
}

main
