# SPDX-License-Identifier: MIT
#
# headers.awk -v format=man|rst -v folder=FOLDER -v version=VERSION HEADER...: makes the reference of the C interface from
# the comments of its headers; a header of C++ is left out. A comment belongs to the declarations between it and the next
# comment. `man` makes a manual page for each such group, named after its first declaration, and a link to it for each other
# name. `rst` makes a page for each header, for the site (etc/site).

# ---- What a line is ----

FNR == 1 {
  finish()
  is_cpp = FILENAME ~ /pp$/
  header = FILENAME
  sub(/.*include\//, "", header)
  section = ""
  begin_header = 1
}

is_cpp {
  next
}

/^#/ || in_macro {
  if (!in_macro && (!/^#define [A-Z_]+[( ]/ || !has_text && !in_macros)) next # guards, conditions, attributes
  if (!in_macro && match($0, /HIPMM_[A-Z0-9_]+/)) add_name(substr($0, RSTART, RLENGTH))
  kind = kind == "" ? "macro" : kind
  shown = shown $0 "\n"
  in_macro = /\\$/
  in_macros = 1
  has_text = 0
  next
}

/^\/\* SPDX/ || /^extern "C"/ || /^}$/ && depth == 0 {
  next
}

/^\/\* -+ / {
  finish()
  section = $0
  gsub(/^\/\* -+ | -+ \*\/$/, "", section)
  if (format == "rst") heading(section, "-")
  next
}

/^\/\*/ && depth == 0 {
  finish()
  text = ""
  in_comment = 1
}

in_comment {
  line = $0
  is_last = sub(/ *\*\/$/, "", line)
  sub(/^ ?(\/\*|\*)/, "", line)
  sub(/^ /, "", line)
  text = text line "\n"
  if (is_last) {
    in_comment = 0
    has_text = 1
    if (begin_header) describe_header()
  }
  next
}

/^$/ && depth == 0 {
  if (has_text && text != "") paragraph_alone() # a comment above a blank line is about the section
  in_macros = 0
  next
}

{
  declaration = declaration $0 "\n"
  code = $0
  gsub(/\/\*.*\*\//, "", code)
  depth += gsub(/{/, "{", code) - gsub(/}/, "}", code)
  if (depth == 0 && code ~ /[;}] *$/) declare()
}

END {
  finish()
}

# ---- Declarations ----

function declare(  signature, name) {
  has_text = 0
  if (declaration ~ /^[^{;]*hipmm_[a-z0-9_]+\(/ && declaration !~ /^(struct|enum|typedef)[^(]*{/) {
    signature = declaration
    sub(/\n{.*/, ";\n", signature)
    match(signature, /hipmm_[a-z0-9_]+\(/)
    add_name(substr(signature, RSTART, RLENGTH - 1))
    kind = "function"
    if (format == "rst") {
      gsub(/HIPMM_MUST_CHECK |static inline |HIPMM_EXPORT /, "", signature)
      gsub(/\n +/, " ", signature)
    }
    sub(/\n$/, "", signature)
    if (format == "rst" && match(signature, / \/\*.*\*\/$/)) {
      text = text "\n" names[n_names] "(): " substr(signature, RSTART + 4, RLENGTH - 7) "\n"
      signature = substr(signature, 1, RSTART - 1)
    }
    signatures[++n_signatures] = signature
  } else {
    if (text == "" && n_names) finish()
    name = declaration
    if (match(name, /^(struct|enum) hipmm_[a-z0-9_]+/)) {
      name = substr(name, 1, RLENGTH)
      if (kind == "") kind = name ~ /^enum/ ? "enum" : "struct"
      sub(/^[a-z]+ /, "", name)
    } else if (name ~ /^typedef/) {
      gsub(/;\n.*|\)\(.*/, "", name)
      sub(/.*[ *]/, "", name)
      if (kind == "") kind = "type"
    } else {
      match(name, /HIPMM_[A-Z0-9_]+/)
      name = substr(name, RSTART, RLENGTH)
      if (kind == "") kind = "constants"
    }
    add_name(name)
    shown = shown declaration
  }
  declaration = ""
}

function add_name(name) {
  names[++n_names] = name
}

# The group is complete.
function finish(  i) {
  if (n_names && format == "man") man_page()
  if (n_names && format == "rst") rst_group()
  for (i in names) delete names[i]
  for (i in signatures) delete signatures[i]
  n_names = n_signatures = has_text = in_macros = 0
  kind = shown = text = declaration = ""
}

# ---- Text ----

# paragraphs(): calls put(kind, text) for each paragraph of `text`: "text", "item" or "code"
function paragraphs(  lines, n, i, was) {
  n = split(text, lines, "\n")
  paragraph = was = ""
  for (i = 1; i < n; i++) {
    line = lines[i]
    if (line == "") {
      flush(was)
      was = ""
    } else if (line ~ /^ *- /) {
      flush(was)
      was = "item"
      sub(/^ *- /, "", line)
      paragraph = line
    } else if (was != "item" && line ~ /^  /) {
      if (was != "code") flush(was)
      was = "code"
      paragraph = paragraph line "\n"
    } else {
      if (was == "code") flush(was)
      if (was != "item") was = "text"
      sub(/^ +/, "", line)
      paragraph = paragraph (paragraph == "" ? "" : " ") line
    }
  }
  flush(was)
}

function flush(was) {
  if (paragraph != "") put(was, paragraph)
  paragraph = ""
}

function put(was, words) {
  if (format == "man") man_put(was, words)
  else rst_put(was, words)
}

# The first sentence, as the line of a page says what it is about
function summary(  words) {
  words = text
  sub(/\n\n.*/, "", words)
  gsub(/\n */, " ", words)
  gsub(/ \([^)]*\)| $/, "", words)
  if (match(words, /[.:;]( |$)/)) words = substr(words, 1, RSTART - 1)
  return words == "" ? section : words
}

# ---- Manual pages ----

function man_put(was, words) {
  if (was == "code") {
    sub(/\n$/, "", words)
    print ".PP\n.nf\n" roff(words) "\n.fi" >page
  } else {
    print (was == "item" ? ".IP \\(bu 2\n" : ".PP\n") roff(words) >page
  }
}

# man_begin NAME: opens the page of the name
function man_begin(name) {
  page = folder "/" name ".3"
  print ".\\\" SPDX-License-Identifier: MIT\n.\\\" Made by headers.awk from " header >page
  print ".TH " toupper(name) " 3 \"\" \"hipmm " version "\" \"Library Functions\"\n.nh\n.SH NAME" >page
}

function man_page(  first, i, line) {
  for (i = 1; i <= n_names; i++) {
    if (pages[names[i]]++) continue # declared before
    line = line (first ? ", " : "") names[i]
    if (!first) man_begin(first = names[i])
    else {
      print ".so man3/" first ".3" >(folder "/" names[i] ".3")
      close(folder "/" names[i] ".3")
    }
  }
  if (!first) return
  print line " \\- " roff(summary()) "\n.SH SYNOPSIS\n.nf\n.B #include <" header ">\n.PP" >page
  for (i = 1; i <= n_signatures; i++) print roff(signatures[i]) >page
  printf "%s", roff(shown) >page
  print ".fi\n.SH DESCRIPTION" >page
  paragraphs()
  print ".SH SEE ALSO\n.BR " file_name(header) " (3)" >page
  close(page)
}

function file_name(path) {
  gsub(/\//, "-", path)
  sub(/^hipmm-hipmm/, "hipmm", path)
  return path
}

function describe_header() {
  begin_header = 0
  sub(/^[^:\n]*: /, "", text)
  if (format == "man") {
    man_begin(file_name(header))
    print file_name(header) " \\- " roff(summary()) "\n.SH SYNOPSIS\n.B #include <" header ">\n.SH DESCRIPTION" >page
    paragraphs()
    print ".SH SEE ALSO\n.BR hipmm (1),\n.BR hipmm.json (5)" >page
    close(page)
    text = ""
    has_text = 0
  } else {
    page = folder "/" file_name(header) ".rst"
    heading(header, "=")
    paragraph_alone()
  }
}

# A comment about the section: the text of no declaration. In the manual it leads the next page.
function paragraph_alone() {
  if (format == "rst") {
    indent = ""
    paragraphs()
    text = ""
  }
  has_text = 0
}

# ---- reStructuredText ----

function rst(words,  parts, n, i, result, name) {
  n = split(words, parts, "`")
  for (i = 1; i <= n; i++) {
    if (i % 2) {
      gsub(/[\\*|_]/, "\\\\&", parts[i])
      while (match(parts[i], /hipmm(\\_[a-z0-9]+)+\(\)/)) { # a link
        name = substr(parts[i], RSTART, RLENGTH)
        gsub(/\\/, "", name)
        result = result substr(parts[i], 1, RSTART - 1) ":c:func:`" name "`"
        parts[i] = substr(parts[i], RSTART + RLENGTH)
      }
      result = result parts[i]
    } else {
      result = result "``" parts[i] "``"
    }
  }
  return result
}

function heading(words, mark,  line) {
  line = words
  gsub(/./, mark, line)
  print words "\n" line "\n" >page
}

# block LINES, as an indented block
function block(lines) {
  sub(/\n$/, "", lines)
  gsub(/\n/, "\n" indent "   ", lines)
  gsub(/\n +\n/, "\n\n", lines)
  print indent ".. code-block:: c\n" indent "   :force:\n\n" indent "   " lines "\n" >page
}

function rst_put(was, words) {
  if (was == "code") block(words)
  else print indent (was == "item" ? "- " : "") rst(words) "\n" >page
}

function rst_group(  i) {
  indent = ""
  if (kind != "constants" && !(names[1] in pages)) {
    if (kind == "function") {
      for (i = 1; i <= n_signatures; i++) print (i == 1 ? ".. c:function:: " : "                ") signatures[i] >page
    } else {
      print ".. c:" kind ":: " names[1] >page
    }
    print "" >page
    indent = "   "
  }
  pages[names[1]] = 1
  paragraphs()
  if (shown != "") block(shown)
}
