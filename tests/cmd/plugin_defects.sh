#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `hipmm plugin test` on the plugins that `hipmm plugin new` writes: right as they are, over every kind of upstream, and with
# changes that leave them right; and with one defect planted in each, which fails the check that is for it.
. "${top_srcdir:?set it to the source folder}/tests/cmd/common.sh"
ASAN_OPTIONS=${ASAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
TSAN_OPTIONS=${TSAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
UBSAN_OPTIONS=${UBSAN_OPTIONS-}:handle_segv=0:handle_abort=0:handle_sigfpe=0
export ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS
run 0 plugin new --role sub-allocator slots
run 0 plugin new --role adaptor forward

# builds TYPE SED: the file is $changed/TYPE.so
builds() {
  changed=$(mktemp -d "$work/changed.XXXXXX")
  sed "$2" "$1/$1.c" >"$changed/$1.c"
  [ "$2" = ";" ] || ! cmp -s "$1/$1.c" "$changed/$1.c" || fail "nothing is changed in $1.c by: $2"
  # shellcheck disable=SC2086 # lists of words
  ${CC:-cc} -std=gnu11 -O1 -w -shared -fPIC ${SANITIZER_FLAGS-} -I "$top_srcdir/include" -o "$changed/$1.so" \
    "$changed/$1.c" || fail "$1.c cannot be compiled after: $2"
}

# right TYPE SED OPTION...
right() {
  type=$1
  builds "$1" "$2"
  shift 2
  run 0 plugin test --seconds 0 "$@" "$changed/$type.so"
  prints ' 0 failed, '
}

# wrong TYPE CHECK TEXT SED
wrong() {
  builds "$1" "$4"
  run 1 plugin test --seconds 3 --only "$2" "$changed/$1.so"
  prints "^FAILED   $2: .*; came: .*$3.*; to mend it: .\{20\}"
}

# In one function alone.
in_function() {
  echo "/^static [a-z_ ]*\**$1(/,/^}/{
$2
}"
}

# ---- Right ----

for over in device pool arena async managed; do right slots ';' --over $over; done
for over in device pool; do right forward ';' --over $over; done
# The slot that was freed last is used first.
last_first=$(in_function slots_add_free '/^  /d
s|^{|&\
  slot->next = self->first_free;\
  self->first_free = slot;\
  if (!slot->next) self->last_free = slot;|')
right slots "$last_first"
# Each free waits for its stream.
right slots 's|^  slot->bytes = 0;|  if (!slot->is_withheld) self->services->hip->StreamSynchronize(stream);\
&|'
# No memory goes back before the end.
right slots '/\.trim = slots_trim/d'

# ---- Wrong ----

order='memory is given to a stream that is not ordered after the free before'
wrong slots 'default streams' "$order.*default stream" \
  's|^  int previous.*StreamWaitEvent.*|  if ((uintptr_t)stream <= 2) return HIPMM_OK;\
&|'
wrong slots 'many calls' "$order" 's|#include <pthread.h>|&\
static unsigned n;|
s/is_withheld ? HIPMM_OK :/is_withheld || ++n % 5000 == 0 ? HIPMM_OK :/'
wrong slots 'work under way' 'the upstream gets .* bytes back on a stream that does not wait' \
  '/^  services->hip->DeviceSynchronize();/d'
wrong slots 'work under way' 'the upstream gets .* bytes back on a stream that does not wait' \
  's/code = self->slabs ? services->hip->DeviceSynchronize() : 0/code = 0/'
wrong slots devices 'hipErrorInvalidHandle' 's/int previous = services->enter_device(services), code = 0;/int previous = 0, code = 0;/'
wrong slots devices 'a call left device 1 current' "$(in_function slots_wait /leave_device/d)"
wrong slots look-ups 'find\|the process crashed' "$(in_function slots_find /pthread_mutex_/d)"
wrong slots 'boundary sizes' 'of a block of 65536 bytes' 's/size_t bytes; *\/\* as requested/uint16_t bytes; \/\* as requested/'
wrong slots captures 'hipErrorStreamCaptureIsolation' 's/!hipmm_stream_is_captured(self->services->hip, stream)) {/1) {/'
wrong slots captures 'a block that was freed in the capture is given to another stream' \
  's/slot->is_withheld = hipmm_stream_is_captured.*/slot->is_withheld = 0;/'
wrong slots values 'slots_allocations grows by 8 with 8 allocations, and by 8 with 8 that failed' \
  's/if (status == HIPMM_OK) __atomic_fetch_add/__atomic_fetch_add/'
wrong slots keep 'a trim that is to keep .* bytes leaves 0 of' 's/^    size_t free_bytes = .*/&\
    keep_bytes = 0;/'
wrong slots threads '.' '/pthread_mutex_\(un\)*lock/d'
wrong slots threads '.' "$(in_function slots_allocate /pthread_mutex_/d)"
wrong slots streams "$order\|lost its pattern" 's/slots_record(self, stream, &slot->freed)/slots_record(self, NULL, \&slot->freed)/'
wrong slots streams "$order\|lost its pattern" 's/slot->freed ? slot->freed : slot->slab->ready/slot->slab->ready/'
wrong slots leaks 'events of HIP were not destroyed' '/if (slab->ready) services->hip->EventDestroy/d'
wrong forward sizes 'an alignment of 8192 bytes was asked for, and one of 4096 of the upstream' \
  's/allocate(self->upstream, bytes, alignment,/allocate(self->upstream, bytes, alignment > 4096 ? 4096 : alignment,/'
wrong forward sizes "the free was on the thread's default stream, and that of the upstream on the default stream" \
  's/deallocate(self->upstream, ptr, bytes, alignment, stream)/deallocate(self->upstream, ptr, bytes, alignment, stream == (hipmm_stream_t)2 ? NULL : stream)/'
wrong forward 'wrong size' 'a free with a size too small succeeds' \
  's/deallocate(self->upstream, ptr, bytes,/deallocate(self->upstream, ptr, 0,/'
finish
