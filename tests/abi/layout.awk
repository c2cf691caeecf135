# SPDX-License-Identifier: MIT
#
# layout.awk: writes layout.c, from what `readelf --debug-dump=info` says of an object with all public structs and enums. Run by
# check-abi.sh --renew. `growing` is a pattern of the structs that may grow.
BEGIN {
  print "/* SPDX-License-Identifier: MIT */"
  print "/* layout.c: written by `make abi-baseline`: the layout of every public struct on machines with 64-bit pointers. It is compiled"
  print " * with the tests; there is nothing to run. A line that fails means that programs or plugins which were built before would"
  print " * break: put the member where it was, and new members at the end of a struct that may grow (doc/abi.md). */"
  for (i = 1; i <= split(headers, header, " "); i++) print "#include <hipmm/" header[i] ">"
  print "\n#if defined(__LP64__)\n"
  print "/* A struct that never grows has its size for ever; one that may grow has at least its present one. */"
  print "#define NEVER_GROWS(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type \" never grows\")"
  print "#define MAY_GROW(type, bytes)    _Static_assert(sizeof(struct type) >= (bytes), #type \" may not shrink\")"
  print "#define AT(type, member, bytes)  _Static_assert(offsetof(struct type, member) == (bytes), #type \".\" #member \" has moved\")"
  print "#define ENUM(type)               _Static_assert(sizeof(enum type) == 4, \"enum \" #type \" has 32 bits\")"
}

# The entry of the last struct or enum is complete.
function finish() {
  if (name ~ /^hipmm_/ && kind == "DW_TAG_enumeration_type") text[name] = "ENUM(" name ");\n"
  if (name ~ /^hipmm_/ && kind == "DW_TAG_structure_type" && bytes != "")
    text[name] = (name ~ growing ? "MAY_GROW(" : "NEVER_GROWS(") name ", " bytes ");\n" members
  name = bytes = members = ""
}

/Abbrev Number: [1-9]/ {
  tag = $NF
  gsub(/[()]/, "", tag)
  if ($1 ~ /^<1>/) {
    finish()
    kind = tag
  }
}
/DW_AT_name/ && tag == kind && name == "" { name = $NF }
/DW_AT_name/ && tag == "DW_TAG_member" { member = $NF }
/DW_AT_byte_size/ && tag == kind && bytes == "" { bytes = $NF }
/DW_AT_data_member_location/ { members = members "AT(" name ", " member ", " $NF ");\n" }

END {
  finish()
  n = 0
  for (one in text) {
    for (i = n++; i > 0 && sorted[i - 1] > one; i--) sorted[i] = sorted[i - 1]
    sorted[i] = one
  }
  for (i = 0; i < n; i++) print "\n" text[sorted[i]] (i == n - 1 ? "\n#endif" : "")
}
