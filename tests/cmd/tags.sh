#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tags of a record: in the report as text, JSON and page, its steps, and conversions; records that were written before there were
# tags; and damaged ones.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"

[ -z "${SANITIZER_FLAGS-}" ] || skip "the program is built without sanitizers"
[ -e "$top_builddir/.libs/libhipmm.so" ] || skip "no shared library was built"

cat >program.c <<'END'
#include <hipmm/hipmm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void ask(const char *tag, size_t bytes)
{
  void *ptr = NULL;
  if ((tag && hipmm_tag_push(tag)) || hipmm_allocate(NULL, bytes, NULL, &ptr) || (tag && hipmm_tag_pop())) abort();
}
static void *end_inside_a_step(void *unused)
{
  (void)unused;
  if (hipmm_tag_push("pass")) abort();
  ask(NULL, 1 << 10);
  return NULL;
}
int main(void)
{
  char step[20];
  pthread_t thread;
  if (hipmm_init_from_file("hipmm.json")) return 1;
  for (int i = 0; i < 3; i++) {
    snprintf(step, sizeof step, "step %d", i);
    if (hipmm_tag_push(step)) return 2;
    ask("layer <7>", 3 << 20);
    ask("loss \"é\" from x in y", 1 << 20);
    ask(NULL, 1 << 19);
    if (hipmm_tag_pop()) return 3;
    ask(NULL, 1 << 18);
  }
  if (hipmm_tag_push("pass")) return 4;
  ask(NULL, 1 << 10);
  for (int i = 0; i < 70; i++)
    if (pthread_create(&thread, NULL, end_inside_a_step, NULL) || pthread_join(thread, NULL)) return 5;
  ask(NULL, 1 << 10);
  if (hipmm_tag_pop()) return 6;
  ask(NULL, 1 << 10);
  return 0;
}
END
libraries=$(cd "$top_builddir/.libs" && pwd)
${CC:-cc} -I"$top_srcdir/include" -pthread -o program program.c -L"$libraries" -lhipmm -Wl,-rpath,"$libraries" || exit 99
cat >hipmm.json <<'END'
{"runtime": "software", "stack": [{"type": "recording", "file": "tags.record"}, "pool", "device"]}
END
./program 2>err || fail "the program ends with $?: $(cat err)"

# tells FILE: the report as JSON has the tags and the steps
tells() {
  run 0 report --json "$1"
  python3 - "$work/out" <<'END' || fail "$1: the tags of the report are wrong"
import json, sys
summary = json.load(open(sys.argv[1]))
MIB = 1 << 20
groups = {group["tag"]: (group["blocks"], group["bytes"]) for group in summary["peak"]["by_tag"]}
assert groups == {"layer <7>": (3, 9 * MIB), 'loss "é" from x in y': (3, 3 * MIB), None: (4, 3 * MIB // 4 + 1024), "pass": (72, 72 * 1024),
                  "step 0": (1, MIB // 2), "step 1": (1, MIB // 2), "step 2": (1, MIB // 2)}, groups
assert summary["end"]["by_tag"] == summary["peak"]["by_tag"]
assert [(mark["name"], mark["event"], mark["end"]) for mark in summary["marks"]] == [
    ("step 0", 0, 3), ("step 1", 4, 7), ("step 2", 8, 11), ("pass", 12, 84)] + [
    ("pass", 13 + i, 14 + i) for i in range(70)], summary["marks"]
assert 'The tag with most of the peak is "layer <7>": 9 MiB (63 %) in 3 blocks.' in summary["findings"], summary["findings"]
END
}
tells tags.record
run 0 report tags.record
prints '         3 blocks  tag layer <7>' '         4 blocks  no tag' '         1 block   tag step 2'

# Conversions keep them.
run 0 convert -o again.record tags.record
tells again.record
run 0 convert -o tags.csv tags.record
tells tags.csv
run 0 convert -o again.record tags.csv
tells again.record
python3 - <<'END' || fail "the columns of the CSV"
import csv
rows = list(csv.DictReader(open("tags.csv")))
assert list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream", "Tag"], rows[0]
assert [row["Tag"] for row in rows[:4]] == ["step 0;layer <7>", 'step 0;loss "é" from x in y', "step 0", ""], rows[:4]
END
# PyTorch's snapshots have steps only.
run 0 convert -o tags.pickle tags.record
run 0 report --json tags.pickle
python3 - "$work/out" <<'END' || fail "the steps of a snapshot"
import json, pickle, sys
marks = [(mark["name"], mark["event"], mark["end"]) for mark in json.load(open(sys.argv[1]))["marks"]]
assert marks == [("step 0", 0, 3), ("step 1", 4, 7), ("step 2", 8, 11), ("pass", 12, 84)], marks
events = pickle.load(open("tags.pickle", "rb"))["device_traces"][0]
assert [event.get("user_metadata") for event in events[:5]] == ["step 0"] * 3 + [None, "step 1"], events[:5]
END
# Semicolons and backslashes of names are marked, and commas do not end a column.
cat >odd.csv <<'END'
Thread,Time,Action,Pointer,Size,Stream,Tag
1,10:00:00.000000,allocate,0x100,8,0,"s, 1;a\;b\\c""d"
1,10:00:01.000000,free,0x100,8,0,
END
run 0 convert odd.csv
cmp -s odd.csv "$work/out" || fail "tags with marks become others: $(cat "$work/out")"
run 0 report --json odd.csv
has marks '[{"name": "s, 1", "event": 0, "end": 1}]'
has peak.by_tag '[{"blocks": 1, "bytes": 8, "tag": "a;b\\c\"d"}]'
# Names may lack quotes, or be empty, and a quote within a column is none.
head -n 1 odd.csv >head.csv
{ cat head.csv && echo '5",t",allocate,0x100,8,0,;a;;b \""c""\;' && echo '0,t,free,0x100,8,0, "a;b, c \""c""\;;"'; } >loose.csv
run 0 report --json loose.csv
has marks '[{"name": "a", "event": 0, "end": 2}]'
has peak.by_tag '[{"blocks": 1, "bytes": 8, "tag": "b \"c\";"}]'
# What is no tag is refused, and in a last line that is cut off it is not read.
for tag in '"open' '"' 'a"b' '"a"b"' "$(printf '%0255d' 0)" '"\0"'; do
  { cat head.csv && printf "1,t,allocate,0x100,8,0,$tag\n"; } >bad.csv
  run 1 convert -o never.record bad.csv
  says '^hipmm: bad.csv:2: ".*" is no tag; write "step 2;layer 7", with quotes doubled, in at most 254 bytes$'
done
{ head -n 2 odd.csv && printf '1,t,allocate,0x200,8,0,"s, '; } >cut.csv
run 0 convert -o again.csv cut.csv
grep -q 'cut.csv: the file is cut off: its last line is not whole$' "$work/err" || fail "a tag that is cut off is read: $(cat "$work/err")"
{ cat head.csv && printf '1,t,allocate,0x100,8,0,"a;%0250d"\n' 0; } >long.csv
run 0 convert -o long.record long.csv
run 0 convert long.record
grep -q "0,\"a;$(printf '%0250d' 0)\"\$" "$work/out" || fail "a long tag is cut: $(cat "$work/out")"
sed 's/a;.*"/é;é'"$(printf 'é%.0s' $(seq 120))"'"/' long.csv >other.csv
run 0 report --compare --json long.csv other.csv
has tables.1.rows.1.0 "\"$(printf '\\u00e9%.0s' $(seq 121))\""

# Two logs beside each other: a tag appeared, one is gone, and one has grown. The plan tells which tag to shrink.
sed 's/step 2;layer <7>/step 2;layer 8/; s/step 2"/step 9"/; s/1048576,0,"step 0;loss/5242880,0,"step 0;loss/' tags.csv >after.csv
run 0 report --compare --json tags.csv after.csv
has tables.1.heading '"Live at the peak, by tag"'
python3 - "$work/out" <<'END' || fail "the tags of two logs are compared wrongly"
import json, sys
summary, MIB = json.load(open(sys.argv[1])), 1 << 20
assert [table["heading"] for table in summary["tables"][1:]] == [
    moment + ", by " + kind for moment in ("Live at the peak", "Allocated in all") for kind in ("tag", "size")]
rows = {row[0]: row[1:] for row in summary["tables"][1]["rows"]}
assert rows == {'loss "é" from x in y': [3 * MIB, 3, 7 * MIB, 3, "4 MiB more (133 %)"], "layer 8": [0, 0, 3 * MIB, 1, "appeared"],
                "layer <7>": [9 * MIB, 3, 6 * MIB, 2, "3 MiB less (33.3 %)"], "step 2": [MIB // 2, 1, 0, 0, "gone"],
                "step 9": [0, 0, MIB // 2, 1, "appeared"]}, rows
assert "At the peak, tag layer 8: 0 bytes and 3 MiB, appeared." in summary["findings"], summary["findings"]
END
run 0 report --compare tags.csv after.csv -o compared.html --text
prints '^- At the peak, tag loss "é" from x in y: 3 MiB and 7 MiB, 4 MiB more (133 %).$'
grep -q '<td class="name">layer &lt;7&gt;</td>' compared.html || fail "the page of two logs lacks a tag"
cut -d, -f1-6 tags.csv >plain.csv
run 0 report --compare --json plain.csv tags.csv
has tables.1.rows.0.0 '"no tag"'
has tables.1.rows.1 '["layer <7>", 0, 0, 9437184, 3, "appeared"]'
echo '{"runtime": "software", "stack": ["pool", "device"]}' >pool.json
run 0 plan --config pool.json --json tags.csv
has logs.0.by_tag.0 '{"blocks": 3, "bytes": 9437184, "halved_saves_bytes": 4718592, "gone_saves_bytes": 9437184, "together_save_bytes": 9437184, "tag": "layer <7>"}'
run 0 plan --config pool.json tags.record
prints '  9 MiB .* 3 blocks with tag layer <7>$'
prints ' 4 blocks with no tag$'
run 0 convert --format chrome -o tags.json tags.record
run 0 convert --format pprof -o tags.pprof tags.record
python3 - <<'END' || fail "the trace or the profile lacks tags"
import json
tags = [event["args"].get("tag") for event in json.load(open("tags.json"))["traceEvents"] if event["ph"] == "b"]
assert tags == [tag for i in range(3) for tag in ("layer <7>", 'loss "é" from x in y', "step %d" % i, None)] + 72 * ["pass"] + [None], tags
profile = open("tags.pprof", "rb").read()
assert all(word.encode() in profile for word in ("tag", "layer <7>", 'loss "é" from x in y', "step 2"))
assert profile.count("[no call stack]".encode()) == 1
END
if installed go "pprof itself"; then
  HOME=$work go tool pprof -raw tags.pprof >raw 2>err || fail "pprof does not read the profile: $(cat err)"
  grep -q 'tag:\[layer <7>\]' raw || fail "pprof finds no tags: $(cat raw)"
fi

# The page colours and groups by tag, and no tag ends its data.
run 0 report -o page.html tags.record
grep -q '"tags":\[null,"layer \\u003c7>","loss \\"é\\" from x in y","step 0","step 1","step 2","pass"\]' page.html ||
  fail "the page lacks the tags"
[ "$(grep -c '<option value="tag">' page.html)" = 2 ] || fail "the page has no choice of tags"
if installed node "the page's script"; then
  node "$top_srcdir/tests/cmd/page_lines.js" page.html >lines 2>&1 || fail "the script fails: $(cat lines)"
fi
by_keys page.html

# Records of before: the same bytes but for the number of the format and the tags.
sed 's/ask("[^,]*,/ask(NULL,/; s/hipmm_tag_pop()/0/; s/hipmm_tag_push([^)]*)/0/' program.c >plain.c
${CC:-cc} -I"$top_srcdir/include" -pthread -o program plain.c -L"$libraries" -lhipmm -Wl,-rpath,"$libraries" || exit 99
sed -i s/tags.record/plain.record/ hipmm.json
./program 2>err || fail "the program without tags ends with $?: $(cat err)"
for format in 1 2 3 4; do
  { printf 'hipmm record %s\n' $format && tail -c +16 plain.record; } >old.record
  run 0 report --json old.record
  python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); sys.exit(s["events"] != 85 or "by_tag" in s["peak"] or s["marks"] != [])' \
    "$work/out" || fail "a record of format $format is read wrongly"
done
run 0 report -o page.html old.record
grep -q '"tags":\[\]' page.html || fail "a page without tags has some"
run 0 convert plain.record
grep -q '^Thread,Time,Action,Pointer,Size,Stream$' "$work/out" || fail "a CSV without tags has a column of them"

# More tags and steps than the report has numbers for: it does not say that their blocks have none.
cat >many.c <<'END'
#include <hipmm/hipmm.h>
#include <stdio.h>
int main(void)
{
  char step[20];
  void *ptr;
  if (hipmm_init_from_file("hipmm.json")) return 1;
  for (int i = 0; i < 66000; i++) {
    snprintf(step, sizeof step, "step %d", i);
    if (hipmm_tag_push(step) || hipmm_allocate(NULL, 256, NULL, &ptr) || hipmm_tag_pop()) return 2;
  }
  return 0;
}
END
${CC:-cc} -I"$top_srcdir/include" -o many many.c -L"$libraries" -lhipmm -Wl,-rpath,"$libraries" || exit 99
sed -i s/plain.record/many.record/ hipmm.json
./many 2>err || fail "the program of many tags ends with $?: $(cat err)"
run 0 report many.record
prints '       466 blocks  tag (others)' 'Of 66000 steps of the program the report has the first '
grep -q 'no tag' "$work/out" && fail "blocks with tags are said to have none"
run 0 report --compare plain.record many.record
prints '^- At the peak, tag (others): 0 bytes and 116.5 KiB, appeared.$'
run 0 report -o many.html many.record
grep -q '"step 65533"\]' many.html || fail "the page has other tags than the first"

# Names that no program gives are shown, not obeyed.
python3 - <<'END'
data = open("tags.record", "rb").read()
assert data.count(b"layer <7>") > 1
open("wild.record", "wb").write(data.replace(b"layer <7>", b"\x1b[2J\xff\n\n\x00a"))
END
run 0 report wild.record
grep -q "$(printf '\033')" "$work/out" && fail "a tag steers the terminal"
run 0 convert --format chrome -o wild.json wild.record
python3 -c 'import json; json.load(open("wild.json"))' || fail "a tag breaks the trace"
run 0 convert --format pprof -o wild.pprof wild.record
run 0 report -o wild.html wild.record
run 0 convert -o wild.pickle wild.record
python3 -c 'import pickle; pickle.load(open("wild.pickle", "rb"))' || fail "a tag breaks the snapshot"
run 0 convert -o wild.csv wild.record
run 0 report --json wild.csv
finish
