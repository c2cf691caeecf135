/* SPDX-License-Identifier: MIT */
/* test_interleave_messages.c: the messages of a local arena (plugins/arena/local.h), with two threads in all orders: both
 * leave blocks; one leaves blocks and the arena's thread receives them; and one leaves a block while the arena changes to
 * another stream. Each block arrives once, and never at another stream. Mistakes must be found. */
#include "../../plugins/arena/local.h"
#include "interleave.h"
#include "interleave_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 4, BLOCK_BYTES = 1024, UNITS = BLOCK_BYTES >> UNIT_BITS };

static enum { NONE, WEAK, NO_COUNT, NO_HANDLE, MISTAKES } mistake;

static const hipmm_stream_t stream = (hipmm_stream_t)0x1000, other_stream = (hipmm_stream_t)0x2000;

static struct blocks records;
static struct local local;
static uint32_t blocks[BLOCKS];
static bool is_sent[BLOCKS], is_received_in_time[BLOCKS];

/* ---- What the threads do ---- */

static void send(unsigned i)
{
  is_sent[i] = local_send(&local, &records, blocks[i], mistake == NO_HANDLE ? local.messages.handle : stream);
}

static void send_two(void)
{
  send(0);
  send(1);
}

static void send_two_others(void)
{
  send(2);
  send(3);
}

static void receive(void)
{
  local_acquire(&local, &records);
  biased_lock_release(&local.lock);
}

static void receive_twice(void)
{
  receive();
  receive();
}

/* The quick list of the blocks' size, which is empty in the beginning. */
static bool has_received(unsigned i)
{
  return block_state(block_of(&records, blocks[i])) == BLOCK_QUICK;
}

/* As when a stream ends: no more blocks, then a wait for its work, and what came before the wait is received. */
static void change_stream(void)
{
  local_acquire(&local, &records);
  local_close_messages(&local);
  if (mistake == NO_COUNT) atomic_fetch_sub(&local.messages.word, 2 * MESSAGES_OPEN);
  biased_lock_release(&local.lock);
  local_acquire(&local, &records);
  for (unsigned i = 0; i < BLOCKS; i++) is_received_in_time[i] = has_received(i);
  local_open_messages(&local, other_stream);
  biased_lock_release(&local.lock);
}

static void close_and_receive(void)
{
  change_stream();
  receive();
}

/* ---- How it begins and ends ---- */

static void register_thread(void)
{
  thread_register();
}

static void begin(void)
{
  blocks_open(&records, &device_services);
  memset(&local, 0, sizeof local);
  memset(is_sent, 0, sizeof is_sent);
  memset(is_received_in_time, 0, sizeof is_received_in_time);
  biased_lock_open(&local.lock);
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_alone(i, register_thread);
  local_open_messages(&local, stream);
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = block_new(&records, 0x100000 + i * BLOCK_BYTES, BLOCK_BYTES);
    local_make_live(&local, block_of(&records, blocks[i]), BLOCK_BYTES - 1, stream);
    if (!block_claim(block_of(&records, blocks[i]))) interleave_note("a live block is not claimed");
  }
  if (mistake == WEAK) interleave_weaken(&local.messages, sizeof local.messages);
}

static void close_records(void)
{
  biased_lock_close(&local.lock);
  blocks_close(&records);
}

static unsigned count_quick(void)
{
  unsigned n = 0;
  for (uint32_t id = local.quick[UNITS]; id && n <= BLOCKS; id = block_of(&records, id)->next) n++;
  return n;
}

/* Each block that was sent is in the list once, and the others are as they were. */
static void end(void)
{
  unsigned n_sent = 0;
  interleave_alone(0, receive);
  for (unsigned i = 0; i < BLOCKS; i++) {
    if (is_sent[i] != has_received(i)) interleave_note("a block does not arrive, or was not sent");
    n_sent += is_sent[i];
  }
  if (count_quick() != n_sent) interleave_note("a block arrives twice, or not at all");
  if (local.live_count != BLOCKS - (int64_t)n_sent) interleave_note("live blocks are counted wrong");
  if (local.live_bytes != (BLOCKS - (int64_t)n_sent) * (BLOCK_BYTES - 1))
    interleave_note("live bytes are counted wrong");
  if (local.messages.word & (MESSAGES_OPEN - 1)) interleave_note("a message is left");
  close_records();
}

static void end_with_all(void)
{
  for (unsigned i = 0; i < BLOCKS; i++)
    if (!is_sent[i]) interleave_note("a block is not sent, although the messages are open");
  end();
}

static void end_with_two(void)
{
  if (!is_sent[0] || !is_sent[1]) interleave_note("a block is not sent, although the messages are open");
  end();
}

static void end_with_other_stream(void)
{
  for (unsigned i = 0; i < BLOCKS; i++)
    if (is_sent[i] && !is_received_in_time[i]) interleave_note("a block arrives at another stream");
  end();
}

static const struct interleave_scenario scenarios[] = {
    {"both leave blocks", begin, {send_two, send_two_others}, end_with_all, INTERLEAVE_UNBOUNDED},
    {"blocks are received meanwhile", begin, {send_two, receive_twice}, end_with_two, INTERLEAVE_UNBOUNDED},
    {"the arena changes to another stream",
     begin,
     {send_two, change_stream},
     end_with_other_stream,
     INTERLEAVE_UNBOUNDED},
    {"it does so and receives", begin, {send_two, close_and_receive}, end_with_other_stream, 4},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void each_block_arrives_once_in_all_orders(void **state)
{
  (void)state;
  mistake = NONE;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > 1000);
}

static void each_block_arrives_once_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  each_block_arrives_once_in_all_orders(state);
  interleave_weaken_processor(false);
}

static void finds_each_mistake(void **state)
{
  static const struct {
    const char *name, *found;
  } mistakes[] = {[WEAK] = {"messages without acquire and release", "a race between"},
                  [NO_COUNT] = {"an end of messages that is not counted", "a block arrives at another stream"},
                  [NO_HANDLE] = {"a block that is left whatever its stream is", "a block arrives at another stream"}};
  (void)state;
  for (mistake = NONE + 1; mistake < MISTAKES; mistake++)
    assert_true(interleave_finds(scenarios, SCENARIOS, mistakes[mistake].name, mistakes[mistake].found));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_block_arrives_once_in_all_orders),
      cmocka_unit_test(each_block_arrives_once_on_a_weaker_processor),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings of messages", tests, NULL, NULL);
}
