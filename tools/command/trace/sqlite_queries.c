/* SPDX-License-Identifier: MIT */
/* sqlite_queries.c: the tables in which programs keep a log. Called by sqlite.c.
 *
 * Nsight Systems: CUDA_GPU_MEMORY_USAGE_EVENTS of an export (nsys profile --cuda-memory-usage=true, then nsys export --type
 * sqlite). Taken are the allocations of device and managed memory; pinned memory and arrays are not what a stack serves. The
 * stream is in the table itself where the release has that column; the thread is that of the CUDA call with the event's
 * correlation, if the profile has CUDA calls (--trace=cuda). A global number of a thread is that of its process, shifted, and
 * its own in 24 bits.
 *
 * rocprofv3: a table rocpd_memory_allocate_GUID for each process. Its frees have no size, and some no agent. Allocations are
 * in order by their end and frees by their start, as in rocprofv3's CSV (rocprof.c).
 *
 * PyTorch: the tables device_traces, blocks and segments of a snapshot. Blocks that lived before the events began are found by
 * their frees, and among the blocks. */
#include "sqlite.h"

#ifdef HIPMM_HAVE_SQLITE
#include <stdio.h>
#include <string.h>

int64_t sqlite_ask(sqlite3 *database, const char *question, int64_t missing)
{
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(database, question, -1, &statement, NULL) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    missing = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return missing;
}

bool sqlite_has(sqlite3 *database, const char *table, const char *column)
{
  char *question =
      sqlite3_mprintf("SELECT count(*) FROM pragma_table_info(%Q) WHERE name = %Q AND EXISTS (SELECT 1 FROM "
                      "sqlite_master WHERE type = 'table' AND sqlite_master.name = %Q)",
                      table, column, table);
  bool has = question && sqlite_ask(database, question, 0) > 0;
  sqlite3_free(question);
  return has;
}

/* One of the columns that a table has, with its table's short name; the last of the names is what stands in for none. */
static const char *sqlite_choose(sqlite3 *database, const char *table, const char *const *names)
{
  while (names[1] && !sqlite_has(database, table, names[0])) names++;
  return names[0];
}

/* ---- Nsight Systems -------------------------------------------------------------------------------------------- */

/* CUDA_MEMOPR_MEMORY_KIND_…: 2 is device memory and 4 managed memory. CUDA_DEV_MEM_EVENT_OPR_…: 0 allocates and 1 frees.
 * 4294967295 is the stream of a call that takes none. */
static char *sqlite_make_nsys(sqlite3 *database, uint64_t *left_processes)
{
  (void)left_processes;
  static const char table[] = "CUDA_GPU_MEMORY_USAGE_EVENTS", calls[] = "CUPTI_ACTIVITY_KIND_RUNTIME";
  if (!sqlite_has(database, table, "address")) return NULL;
  bool has_process = sqlite_has(database, table, "globalPid");
  bool has_thread = has_process && sqlite_has(database, calls, "globalTid") &&
                    sqlite_has(database, calls, "correlationId") && sqlite_has(database, table, "correlationId");
  return sqlite3_mprintf(
      "SELECT start, address, bytes, CASE WHEN memKind NOT IN (2, 4) OR memoryOperationType NOT IN (0, 1) OR bytes < 0 "
      "THEN "
      "NULL ELSE memoryOperationType END, CASE %s WHEN 4294967295 THEN 0 ELSE %s END, %s, %s, CASE memKind WHEN 4 THEN "
      "0 "
      "ELSE %s END, memKind = 4, NULL FROM CUDA_GPU_MEMORY_USAGE_EVENTS event %s ORDER BY start, event.rowid",
      sqlite_has(database, table, "streamId") ? "event.streamId" : "0",
      sqlite_has(database, table, "streamId") ? "event.streamId" : "0", has_thread ? "call.thread" : "0",
      has_process ? "(event.globalPid >> 24) & 16777215" : "0",
      sqlite_has(database, table, "deviceId") ? "event.deviceId" : "0",
      has_thread
          ? "LEFT JOIN (SELECT correlationId, globalTid >> 24 AS process, min(globalTid & 16777215) AS thread FROM "
            "CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY correlationId, process) call ON call.correlationId = "
            "event.correlationId AND call.process = event.globalPid >> 24"
          : "");
}

const struct sqlite_query sqlite_query_nsys = {sqlite_make_nsys, "memory that is neither device nor managed memory",
                                               "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"};

/* ---- rocprofv3 ------------------------------------------------------------------------------------------------- */

enum { SQLITE_MOST_TABLES = 400 }; /* SQLite joins 500 questions */

/* Of one process. The number of the process and its agents stand in tables with the same ending. */
static char *sqlite_make_rocpd_part(sqlite3 *database, const char *table, unsigned host)
{
  char agents[256], processes[256];
  const char *guid = table + strlen("rocpd_memory_allocate");
  snprintf(agents, sizeof agents, "rocpd_info_agent%s", guid);
  snprintf(processes, sizeof processes, "rocpd_info_process%s", guid);
  bool has_agents = sqlite_has(database, agents, "type"), has_processes = sqlite_has(database, processes, "pid");
  const char *const numbers[] = {"type_index", "logical_index", "absolute_index", "id", NULL};
  char *agent_join = has_agents ? sqlite3_mprintf("LEFT JOIN \"%w\" agent ON agent.id = event.agent_id", agents)
                                : sqlite3_mprintf("%s", "");
  char *process_join = has_processes ? sqlite3_mprintf("LEFT JOIN \"%w\" process ON process.id = event.pid", processes)
                                     : sqlite3_mprintf("%s", "");
  char *device =
      has_agents ? sqlite3_mprintf("coalesce(agent.\"%w\", event.agent_id)", sqlite_choose(database, agents, numbers))
                 : sqlite3_mprintf("%s", "event.agent_id");
  char *query = sqlite3_mprintf("SELECT CASE event.type WHEN 'ALLOC' THEN event.\"end\" ELSE event.start END AS time, "
                                "event.address, event.size, CASE "
                                "WHEN event.level = 'SCRATCH' THEN NULL WHEN event.type = 'ALLOC' THEN 0 WHEN "
                                "event.type = 'FREE' THEN 1 ELSE NULL END, "
                                "coalesce(event.stream_id, 0), coalesce(event.tid, 0), (%s & 4294967295) | (%u << 32), "
                                "CASE WHEN event.type = 'FREE' "
                                "THEN -1 WHEN %s = 'CPU' THEN 0 ELSE coalesce(%s, 0) END, CASE %s WHEN 'CPU' THEN 2 "
                                "ELSE 0 END, NULL FROM \"%w\" event "
                                "%s %s",
                                has_processes ? "coalesce(process.pid, event.pid)" : "coalesce(event.pid, 0)", host,
                                has_agents ? "coalesce(agent.type, '')" : "''", device,
                                has_agents ? "coalesce(agent.type, '')" : "''", table, agent_join ? agent_join : "",
                                process_join ? process_join : "");
  bool good = agent_join && process_join && device;
  sqlite3_free(agent_join);
  sqlite3_free(process_join);
  sqlite3_free(device);
  if (good) return query;
  sqlite3_free(query);
  return NULL;
}

/* The number of a table's process. */
static int64_t sqlite_rocpd_process(sqlite3 *database, const char *table)
{
  const char *guid = table + strlen("rocpd_memory_allocate");
  char *process = sqlite3_mprintf("SELECT max(pid) FROM \"rocpd_info_process%w\"", guid);
  char *event = sqlite3_mprintf("SELECT max(pid) FROM \"%w\"", table);
  int64_t found = process ? sqlite_ask(database, process, -1) : -1;
  if (found < 0 && event) found = sqlite_ask(database, event, -1);
  sqlite3_free(process);
  sqlite3_free(event);
  return found;
}

/* Each table is a process: the number of several is one if they are of several hosts, which counts then. */
static char *sqlite_make_rocpd(sqlite3 *database, uint64_t *left_processes)
{
  sqlite3_stmt *tables = NULL;
  char *all = NULL;
  int64_t processes[SQLITE_MOST_TABLES];
  unsigned parts = 0;
  bool good = true;
  if (sqlite3_prepare_v2(database,
                         "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_memory_allocate*' "
                         "ORDER BY name",
                         -1, &tables, NULL) != SQLITE_OK)
    return NULL;
  while (good && sqlite3_step(tables) == SQLITE_ROW) {
    const char *table = (const char *)sqlite3_column_text(tables, 0);
    if (!table || strlen(table) > 200 || !sqlite_has(database, table, "address")) continue;
    if (parts == SQLITE_MOST_TABLES) {
      ++*left_processes;
      continue;
    }
    unsigned host = 0;
    processes[parts] = sqlite_rocpd_process(database, table);
    for (unsigned i = 0; i < parts; i++) host += processes[i] == processes[parts];
    char *part = sqlite_make_rocpd_part(database, table, host), *longer = NULL;
    if (part) longer = sqlite3_mprintf("%s%s%s", all ? all : "", all ? " UNION ALL " : "", part);
    sqlite3_free(part);
    sqlite3_free(all);
    all = longer;
    good = all;
    parts++;
  }
  sqlite3_finalize(tables);
  char *query = good && all ? sqlite3_mprintf("%s ORDER BY time", all) : NULL;
  sqlite3_free(all);
  return query;
}

const struct sqlite_query sqlite_query_rocpd = {
    sqlite_make_rocpd, "scratch memory, or of memory that is neither allocated nor freed", NULL};

/* ---- PyTorch --------------------------------------------------------------------------------------------------- */

static char *sqlite_make_torch(sqlite3 *database, uint64_t *left_processes)
{
  (void)left_processes;
  static const char *const devices[] = {"device", "device_id", "device_index", "0", NULL};
  static const char *const streams[] = {"stream", "stream_id", "0", NULL};
  static const char *const frames[] = {"frames", "NULL", NULL}, *const orders[] = {"id", "rowid", NULL};
  static const char *const addresses[] = {"addr", "address", NULL}, *const sizes[] = {"requested_size", "size", NULL};
  if (!sqlite_has(database, "device_traces", "action") || !sqlite_has(database, "device_traces", "addr")) return NULL;
  const char *device = sqlite_choose(database, "device_traces", devices);
  const char *stream = sqlite_choose(database, "device_traces", streams);
  const char *order = sqlite_choose(database, "device_traces", orders);
  const char *address = sqlite_choose(database, "blocks", addresses);
  char *before =
      sqlite_has(database, "blocks", "state") && sqlite_has(database, "blocks", address)
          ? sqlite3_mprintf("UNION ALL SELECT -1, 0, NULL, block.%s, block.%s, 0, 0, %s, %s FROM blocks block "
                            "WHERE block.state = 'active_allocated' AND NOT EXISTS (SELECT 1 FROM firsts WHERE "
                            "firsts.addr = block.%s)",
                            address, sqlite_choose(database, "blocks", sizes),
                            sqlite_choose(database, "blocks", devices), sqlite_choose(database, "blocks", frames),
                            address)
          : sqlite3_mprintf("%s", "");
  char *query = sqlite3_mprintf(
      "WITH events AS (SELECT %s AS number, action, addr, size, time_us, %s AS device, %s AS stream, %s AS frames FROM "
      "device_traces WHERE action IN ('alloc', 'free_requested', 'free', 'oom')), firsts AS (SELECT min(number), "
      "action, addr, "
      "size, device, stream FROM events WHERE action <> 'oom' GROUP BY device, addr), rows AS (SELECT 0 AS part, "
      "number, "
      "time_us * 1000 AS time, CASE action WHEN 'oom' THEN 0 ELSE addr END AS addr, size, CASE action WHEN 'alloc' "
      "THEN 0 WHEN "
      "'oom' THEN 2 ELSE 1 END AS act, stream, device, frames FROM events UNION ALL SELECT -1, 0, NULL, addr, size, 0, "
      "stream, "
      "device, NULL FROM firsts WHERE action <> 'alloc' %s) SELECT time, addr, size, act, stream, 0, 0, device, 0, "
      "frames FROM "
      "rows ORDER BY part, number",
      order, device, stream, sqlite_choose(database, "device_traces", frames), before ? before : "");
  sqlite3_free(before);
  return query;
}

const struct sqlite_query sqlite_query_torch = {sqlite_make_torch, "events of other kinds", NULL};
#endif
