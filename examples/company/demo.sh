#!/bin/sh
# The tour of `make demo`: a company as a graph, from its schema to its history.
set -eu
cd "$(dirname "$0")/../.."
here=examples/company
queries=$here/queries

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
store=$folder/company.omni

bold=; dim=; plain=
if [ -t 1 ]; then bold=$(printf '\033[1m'); dim=$(printf '\033[2m'); plain=$(printf '\033[0m'); fi
short() { sed "s|$folder/||g"; }
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
tell() {
  shown=
  for word in "$@"; do
    case $word in *[!A-Za-z0-9_./=:@\>-]*) word="'$word'" ;; esac
    shown="$shown $word"
  done
  printf '%s$ omnigraph%s%s\n' "$dim" "$shown" "$plain" | short
}
run() { tell "$@"; omnigraph "$@" --quiet > "$folder/output"; short < "$folder/output"; }
fail() { tell "$@"; if omnigraph "$@" --quiet 2> "$folder/output"; then exit 1; fi; short < "$folder/output"; }
commit_of() { sed -n 's/.*commit \([0-9A-Z]\{26\}\)$/\1/p' "$folder/output"; }

say "A graph is created from a schema: ten node types, twenty edge types."
run init "$store" --schema $here/company.pg --as ada

say "A load is one commit for all its types."
run load "$store" --data $here/company.jsonl --mode append --as ada
loaded=$(commit_of)

say "A query reads one type: who works here, by level."
run query headcount --store "$store" --query $queries/overview.gq

say "A branch costs nothing; a file of hires is merged into it: new people, and changed ones."
run load "$store" --data $here/hires.jsonl --mode merge --branch hires --from main --as bo

say "A mutation changes the branch, as another commit."
run mutate promote --store "$store" --branch hires --query $queries/changes.gq --as bo \
  --params '{"handle": "cleo", "level": "lead", "title": "Search lead"}'

say "On the branch Cleo is promoted ..."
run query people --store "$store" --branch hires -e 'query people() { match { $p: Person { handle: "cleo" } } return { $p.name, $p.level, $p.title } }'

say "... and main does not know."
run query people --store "$store" -e 'query people() { match { $p: Person { handle: "cleo" } } return { $p.name, $p.level, $p.title } }'

say "A load that breaks rules is refused as a whole: file, line, property, value and rule."
cat > "$folder/bad.jsonl" <<'BAD'
{"type": "Person", "data": {"handle": "zoe", "name": "Zoe Lang", "email": "zoe@company.example", "level": "boss", "startedOn": "2025-02-03"}}
{"type": "Project", "data": {"code": "AA-1", "name": "Attic", "status": "idea", "priority": 9}}
{"edge": "MemberOf", "from": "zoe", "to": "no-such-team", "data": {"role": "member"}}
BAD
fail load "$store" --data "$folder/bad.jsonl" --mode append

say "A delete takes the edges of what it deletes along."
run mutate leave --store "$store" --query $queries/changes.gq --params '{"handle": "bo"}' --as ada

say "Time travel: the commit of the load still has Bo; the head of main does not."
run query people --store "$store" --query $queries/people.gq --params '{"handles": ["ada", "bo"]}' --snapshot "$loaded"
run query people --store "$store" --query $queries/people.gq --params '{"handles": ["ada", "bo"]}'

say "The schema changes on main, as a commit: a rename, new properties and types. Branches keep theirs."
run schema apply "$store" --schema $here/company_next.pg --as ada

say "What the branch has that main has not, ..."
run diff hires --store "$store" --stat

say "... merged into main by entity, although main has another schema by now."
run branch merge hires --store "$store" --delete-branch --as ada

say "Who gave Cleo what she has today."
run blame Person cleo --store "$store"

say "What happened on main."
run commit list "$store"

say "An export, loaded into a new graph, gives the same graph, byte for byte."
run init "$folder/copy.omni" --schema $here/company_next.pg
tell export "$store" '>' export.jsonl
omnigraph export "$store" > "$folder/export.jsonl"
run load "$folder/copy.omni" --data "$folder/export.jsonl" --mode append | sed -n '1p;$p'
omnigraph export "$folder/copy.omni" | cmp - "$folder/export.jsonl"
printf '%s entities, the same bytes\n' "$(wc -l < "$folder/export.jsonl" | tr -d ' ')"

say "A pipeline on Spark reads three systems, each with records of its own shape: a table of partners, nested projects, papers. Its definition is checked before anything is read."
cp -R $here/intake "$folder/intake"
run pipeline validate "$folder/intake/intake.yaml"

say "A run loads all of them into a branch of its own, in one commit (Spark takes a while to start) ..."
run pipeline run "$folder/intake/intake.yaml" --slot partners --as ada

say "... where words and meaning find papers, and edges lead from these to their authors and to what they work on."
run query answers --store "$store" --branch intake/partners --query $queries/knowledge.gq \
  --params '{"text": "archive ranking", "probe": [0.85, 0.15, 0.05, 0.1]}'

say "What the run would change on main, ..."
run diff intake/partners --store "$store" --stat

say "... merged after review."
run branch merge intake/partners --store "$store" --delete-branch --as ada

say "The ledger of the pipeline: what ran, and what became of it."
run pipeline runs "$folder/intake/intake.yaml"

say "Everything is checked: records, tables, keys, ends, change sets."
run check "$store"
