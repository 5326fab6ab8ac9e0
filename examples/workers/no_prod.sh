#!/bin/sh
# A hook as a command: it keeps writers out of production.
# Without a parser for JSON it must be careful: what it does not know, it denies.
case $(cat) in
*'"path":"/srv/prod/'* | *'..'*) echo "production is off limits" >&2; exit 2 ;;
*'"path":"'*) exit 0 ;;
*) echo "there is no path" >&2; exit 2 ;;
esac
