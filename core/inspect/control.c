/* SPDX-License-Identifier: MIT */
/* control.c: see control.h, and hipmm/control.h. The object is opened once, and stays. */
#include "control.h"
#include "../base/environment.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/live_format.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../base/trust.h"
#include "../plugin/plugin.h"
#include "inspect.h"
#include "publish.h"
#include <hipmm/control.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- What the program does itself ---- */

enum { CONTROL_ACTIONS = 2 };

static const char *const control_names[CONTROL_ACTIONS] = {"suspend", "resume"};

struct control_action {
  void (*request)(void *arg);
  void *arg;
  uint64_t asked, replied; /* the latest request, and the latest that has a reply */
  struct control_reply reply;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t called;
  bool is_calling; /* a function of the program; not under the lock, since it may reply */
  pthread_t caller;
  struct control_action actions[CONTROL_ACTIONS];
} control = {.lock = PTHREAD_MUTEX_INITIALIZER, .called = PTHREAD_COND_INITIALIZER};

/* NULL: the thread's error says why. */
static struct control_action *control_find(const char *name)
{
  char shown[TEXT_QUOTE_BYTES];
  for (int i = 0; name && i < CONTROL_ACTIONS; i++)
    if (!strcmp(name, control_names[i])) return &control.actions[i];
  error_set(HIPMM_E_ARGUMENT, "there is no action %s; there are \"suspend\" and \"resume\"",
            name ? text_quote(name, shown, sizeof shown) : "NULL");
  return NULL;
}

/* False: nobody waits for a reply. */
static bool control_end_request(struct control_action *action, enum hipmm_status result, const char *reason)
{
  if (action->asked == action->replied) return false;
  action->replied = action->asked;
  action->reply = (struct control_reply){.is_there = true, .result = result};
  snprintf(action->reply.reason, sizeof action->reply.reason, "%.*s", CONTROL_REASON_BYTES - 1, reason);
  return true;
}

enum hipmm_status hipmm_control_register(const char *name, void (*request)(void *arg), void *arg)
{
  if (lifecycle_is_forked()) return lifecycle_check();
  struct control_action *action = control_find(name);
  if (!action) return HIPMM_E_ARGUMENT;
  pthread_mutex_lock(&control.lock);
  while (control.is_calling && !pthread_equal(control.caller, pthread_self()))
    pthread_cond_wait(&control.called, &control.lock);
  control_end_request(action, HIPMM_E_STATE,
                      "the program has registered another function meanwhile, or none; ask again");
  action->request = request;
  action->arg = arg;
  pthread_mutex_unlock(&control.lock);
  return HIPMM_OK;
}

enum hipmm_status hipmm_control_reply(const char *name, enum hipmm_status result)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  if (lifecycle_is_forked()) return lifecycle_check();
  struct control_action *action = control_find(name);
  if (!action) return HIPMM_E_ARGUMENT;
  hipmm_last_error(&error);
  const char *reason = !result ? "" : error.status == result ? error.message : hipmm_status_string(result);
  pthread_mutex_lock(&control.lock);
  bool is_asked = control_end_request(action, result, reason);
  pthread_mutex_unlock(&control.lock);
  if (is_asked) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "nobody has asked for \"%s\", or the request has ended already", name);
}

static void control_call(void (*request)(void *arg), void *arg)
{
  const char *outer = lifecycle_forbid_reentry("a function of hipmm_control_register()");
  request(arg);
  lifecycle_allow_reentry(outer);
  pthread_mutex_lock(&control.lock);
  control.is_calling = false;
  pthread_cond_broadcast(&control.called);
  pthread_mutex_unlock(&control.lock);
}

static enum hipmm_status control_ask(const char *name, uint64_t *number_out)
{
  struct control_action *action = control_find(name);
  if (!action) return HIPMM_E_ARGUMENT;
  pthread_mutex_lock(&control.lock);
  void (*request)(void *arg) = action->request, *arg = action->arg;
  bool is_new = request && action->asked == action->replied;
  if (is_new) {
    action->asked++;
    control.is_calling = true;
    control.caller = pthread_self();
  }
  *number_out = action->asked;
  pthread_mutex_unlock(&control.lock);
  if (is_new) control_call(request, arg);
  if (request) return HIPMM_OK;
  return error_set(HIPMM_E_NOT_SUPPORTED,
                   "the program has not said how it does this: only it knows when no work uses the memory; it calls "
                   "hipmm_control_register(\"%s\", …), in Python hipmm.on_control(\"%s\", …)",
                   name, name);
}

static enum hipmm_status control_reply_to(const char *name, uint64_t number, struct control_reply *reply_out)
{
  struct control_action *action = control_find(name);
  if (!action) return HIPMM_E_ARGUMENT;
  pthread_mutex_lock(&control.lock);
  *reply_out = action->replied >= number ? action->reply : (struct control_reply){0};
  pthread_mutex_unlock(&control.lock);
  return HIPMM_OK;
}

/* ---- What hipmm does ---- */

/* Text may name a file, and an object a function of the program: neither is set from outside. */
static enum hipmm_status control_set(const char *path, const char *value)
{
  struct path target;
  enum hipmm_status status = path_find(path, &target);
  if (status) return status;
  const struct hipmm_option *row = path_option(&target);
  const char *name = target.name;
  bool is_plain = !row || row->type == HIPMM_OPTION_BOOL || row->type == HIPMM_OPTION_INTEGER ||
                  row->type == HIPMM_OPTION_BYTES || row->type == HIPMM_OPTION_DURATION ||
                  row->type == HIPMM_OPTION_RATIO || row->type == HIPMM_OPTION_ENUM;
  path_release(&target);
  if (is_plain) return hipmm_set(path, value);
  return error_set(HIPMM_E_NOT_SUPPORTED,
                   "%.300s: only numbers, sizes, times, words and true or false are set from outside; the program can "
                   "set %s itself (hipmm_set())",
                   path, name);
}

static enum hipmm_status control_use(const char *path, const char *action, size_t keep_bytes, char **report_out)
{
  struct path target;
  if (!*path && !action && !report_out) return hipmm_trim(keep_bytes);
  enum hipmm_status status = path_find_resource(path, &target);
  if (status) return status;
  struct stack *stack = target.stack;
  struct hipmm_resource *resource = &(target.instance ? target.instance : &stack->instances[stack->top])->resource;
  status = report_out ? hipmm_resource_report(resource, report_out)
           : action   ? hipmm_resource_perform(resource, action)
                      : hipmm_resource_trim(resource, keep_bytes);
  path_release(&target);
  return status;
}

/* ---- The object ---- */

static control_stop_function *control_stop; /* NULL: nobody listens */

static void *control_open(char reason[CONTROL_REASON_BYTES])
{
  static const char *const names[] = {"control/control.so", "../tools/control/.libs/control.so"}; /* of a build tree */
  char file[PATH_MAX];
  if (!plugin_find_beside(names, sizeof names / sizeof *names, file)) {
    snprintf(reason, CONTROL_REASON_BYTES,
             "control/control.so is not in the folders of plugins; is the installation of hipmm complete?");
    return NULL;
  }
  const struct error_record before = error_mark();
  bool is_safe = !plugin_check_file(file) && !trust_check_named(file);
  void *object = is_safe ? dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  if (!object) snprintf(reason, CONTROL_REASON_BYTES, "%s", is_safe ? dlerror() : hipmm_last_error_message());
  error_return_to_mark(&before);
  return object;
}

void control_begin(void)
{
  static const struct control_calls calls = {.struct_size = sizeof calls,
                                             .list = hipmm_list,
                                             .get = hipmm_get,
                                             .set = control_set,
                                             .snapshot = hipmm_snapshot,
                                             .use = control_use,
                                             .ask = control_ask,
                                             .reply_to = control_reply_to,
                                             .read_counters = publish_fill,
                                             .error_message = hipmm_last_error_message,
                                             .string_free = hipmm_string_free};
  char reason[CONTROL_REASON_BYTES] = "control.so is of another release";
  void *object = control_open(reason);
  control_serve_function *serve = object ? (control_serve_function *)dlsym(object, CONTROL_SERVE) : NULL;
  control_stop_function *stop = object ? (control_stop_function *)dlsym(object, CONTROL_STOP) : NULL;
  if (serve && stop && serve(&calls, HIPMM_VERSION, reason))
    control_stop = stop;
  else
    log_line(HIPMM_LOG_WARNING, "control", "hipmm ctl cannot reach this process: %s", reason);
}

void control_end(void)
{
  if (control_stop) control_stop();
  control_stop = NULL;
  pthread_mutex_lock(&control.lock);
  for (int i = 0; i < CONTROL_ACTIONS; i++)
    control_end_request(&control.actions[i], HIPMM_E_STATE, "the program has finalised hipmm meanwhile");
  pthread_mutex_unlock(&control.lock);
}
