#!/usr/bin/env bash
# The picture of the README: the page that --html writes of a sample, seen by a headless browser.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp samples/claude-code.jsonl "$folder/session.jsonl"
compact -q -t 25% "$folder/session.jsonl" --html "$folder/page.html" -o "$folder/small.jsonl"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,710 \
    --screenshot=docs/images/page.png "file://$folder/page.html"
