#!/bin/sh
# The tour of `make demo`: what Omnigraph makes of the company graph in this folder.
set -eu
cd "$(dirname "$0")/../.."
here=examples/company

bold=; plain=
if [ -t 1 ]; then bold=$(printf '\033[1m'); plain=$(printf '\033[0m'); fi
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "The program"
run omnigraph version

say "A schema: checked, and what it declares"
run omnigraph schema check $here/company.pg

say "Queries: parsed, type-checked and linted against the schema"
for file in $here/queries/*.gq; do
  run omnigraph lint --schema $here/company.pg --query "$file"
done

say "A changed schema: the steps that lead to it, and whether data allows them"
run omnigraph schema plan --from $here/company.pg --schema $here/company_next.pg

say "Layout: already as the formatter would write it"
run omnigraph fmt --check $here && echo "nothing to change"

say "Mistakes: all of them at once, where they are, and what was probably meant"
run omnigraph schema check examples/mistakes.pg || true
