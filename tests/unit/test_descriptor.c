/* SPDX-License-Identifier: MIT */
/* Tests of core/plugin/descriptor.c: which descriptors are accepted, and how they are copied. The descriptors are in
 * memory; test_plugin tests files of bad plugins. */
#include "../../core/plugin/plugin.h"
#include "../support/support.h"

#include <stdlib.h>
#include <string.h>

/* ---- A sound plugin ---- */

struct sound_bin {
  uint64_t size;
};

struct sound_options {
  uint64_t size;
  uint32_t kind;
  struct hipmm_list bins;
};

static enum hipmm_status sound_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  (void)self, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_INTERNAL;
}

static enum hipmm_status sound_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)self, (void)ptr, (void)bytes, (void)alignment, (void)stream;
  return HIPMM_E_INTERNAL;
}

static enum hipmm_status sound_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)services, (void)options, (void)upstreams, (void)n_upstreams, (void)self_out;
  return HIPMM_E_INTERNAL;
}

static void sound_destroy(void *self)
{
  (void)self;
}

static enum hipmm_status sound_reconfigure(void *self, const char *option, const void *options)
{
  (void)self, (void)option, (void)options;
  return HIPMM_E_LIMIT;
}

static const char *const sound_kinds[] = {"one", "two", NULL};

/* A valid plugin with a row of each kind; a test makes one field invalid. */
struct sample {
  struct hipmm_plugin plugin;
  struct hipmm_option options[3], fields[1];
  struct hipmm_feature values[1], actions[1];
  struct hipmm_ops ops;
};

static struct sample sound;

static int make_sound(void **state)
{
  (void)state;
  sound = (struct sample){
      .plugin = {HIPMM_PLUGIN_HEAD, .type = "sound", .version = "1", .doc = "A sound plugin",
                 .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1, .max_upstreams = 2, .options = sound.options,
                 .n_options = 3, .options_bytes = sizeof(struct sound_options), .values = sound.values,
                 .actions = sound.actions, .n_values = 1, .n_actions = 1, .ops = &sound.ops, .create = sound_create,
                 .destroy = sound_destroy},
      .options = {{.name = "size",
                   .type = HIPMM_OPTION_BYTES,
                   .offset = offsetof(struct sound_options, size),
                   .doc = "A size",
                   .maximum = "1GiB"},
                  {.name = "kind",
                   .type = HIPMM_OPTION_ENUM,
                   .offset = offsetof(struct sound_options, kind),
                   .doc = "A kind",
                   .choices = sound_kinds},
                  {.name = "bins",
                   .type = HIPMM_OPTION_LIST,
                   .offset = offsetof(struct sound_options, bins),
                   .doc = "Bins",
                   .fields = sound.fields,
                   .n_fields = 1,
                   .field_bytes = sizeof(struct sound_bin)}},
      .fields = {{.name = "size", .type = HIPMM_OPTION_BYTES, .doc = "A size"}},
      .values = {{"weight", "bytes", "A value"}},
      .actions = {{"flush", NULL, "An action"}},
      .ops = {.struct_size = sizeof(struct hipmm_ops), .allocate = sound_allocate, .deallocate = sound_deallocate}};
  return 0;
}

static enum hipmm_status adopt(struct hipmm_plugin *adopted)
{
  return descriptor_adopt(&sound.plugin, "/dir/sound.so", "sound", adopted);
}

/* ---- What is taken over ---- */

static void takes_a_sound_one_over(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  assert_ok(adopt(&adopted));
  memset(sound.options, 0, sizeof sound.options);
  memset(sound.fields, 0, sizeof sound.fields);
  assert_string_equal(adopted.type, "sound");
  assert_int_equal(adopted.n_options, 3);
  assert_string_equal(adopted.options[0].maximum, "1GiB");
  assert_string_equal(adopted.options[2].fields[0].name, "size");
  assert_string_equal(adopted.values[0].name, "weight");
  assert_string_equal(adopted.actions[0].name, "flush");
  assert_ptr_equal(adopted.create, sound_create);
  descriptor_release(&adopted);
}

static void fills_in_optional_ops(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  int64_t value = 7;
  sound.ops.struct_size = offsetof(struct hipmm_ops, trim); /* the shortest; what follows is not the plugin's */
  memset((char *)&sound.ops + sound.ops.struct_size, 0x5a, sizeof sound.ops - sound.ops.struct_size);
  assert_ok(adopt(&adopted));
  assert_ptr_equal(adopted.ops->allocate, sound_allocate);
  assert_ok(adopted.ops->trim(NULL, 0));
  assert_status(adopted.ops->query(NULL, 0, &value), HIPMM_E_NOT_SUPPORTED);
  assert_status(adopted.ops->perform(NULL, 0, &value), HIPMM_E_NOT_SUPPORTED);
  assert_int_equal(value, 7);
  adopted.ops->stream_retire(NULL, NULL);
  adopted.ops->stream_retain(NULL, NULL);
  assert_status(adopted.ops->reconfigure(NULL, "size", NULL), HIPMM_E_NOT_SUPPORTED);
  assert_ok(adopted.ops->visit(NULL, NULL, NULL));
  assert_null(adopted.ops->find);
  assert_null(adopted.ops->mapping);
  descriptor_release(&adopted);
}

static void validate_nothing(const struct hipmm_validation *validation, const void *options)
{
  (void)validation;
  (void)options;
}

/* The last field of the descriptor is of plugins that were built against a newer plugin.h alone. */
static void takes_a_descriptor_without_validate(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  sound.plugin.validate = validate_nothing;
  assert_ok(adopt(&adopted));
  assert_ptr_equal(adopted.validate, validate_nothing);
  descriptor_release(&adopted);
  sound.plugin.struct_size = offsetof(struct hipmm_plugin, validate);
  assert_ok(adopt(&adopted));
  assert_null(adopted.validate);
  descriptor_release(&adopted);
}

static void takes_an_older_row_over(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  enum { OLD_BYTES = offsetof(struct hipmm_option, minimum) };
  static union {
    char bytes[2 * OLD_BYTES];
    struct hipmm_option align;
  } old;
  memcpy(old.bytes, &sound.options[0], OLD_BYTES);
  sound.options[0].name = "other";
  memcpy(old.bytes + OLD_BYTES, &sound.options[0], OLD_BYTES);
  sound.plugin.options = &old.align;
  sound.plugin.n_options = 2;
  sound.plugin.option_bytes = OLD_BYTES;
  assert_ok(adopt(&adopted));
  assert_string_equal(adopted.options[1].name, "other");
  assert_null(adopted.options[0].maximum);
  assert_null(adopted.options[1].choices);
  descriptor_release(&adopted);
}

/* A plugin built against a later plugin.h: every struct is longer. */
static void takes_a_newer_plugin_over(void **state)
{
  (void)state;
  static struct {
    struct hipmm_plugin plugin;
    uint64_t more[4];
  } newer;
  static struct {
    struct hipmm_option option;
    uint64_t more[3];
  } rows[3];
  static struct {
    struct hipmm_ops ops;
    void *more[2];
  } ops;
  struct hipmm_plugin adopted;
  memset(&newer, 0x5a, sizeof newer);
  memset(rows, 0x5a, sizeof rows);
  memset(&ops, 0x5a, sizeof ops);
  for (int i = 0; i < 3; i++) rows[i].option = sound.options[i];
  rows[2].option.n_fields = 0;
  ops.ops = sound.ops;
  ops.ops.struct_size = sizeof ops;
  newer.plugin = sound.plugin;
  newer.plugin.struct_size = sizeof newer;
  newer.plugin.options = &rows[0].option;
  newer.plugin.option_bytes = sizeof rows[0];
  newer.plugin.ops = &ops.ops;
  assert_ok(descriptor_adopt(&newer, "/dir/sound.so", "sound", &adopted));
  assert_string_equal(adopted.options[2].name, "bins");
  assert_ptr_equal(adopted.ops->deallocate, sound_deallocate);
  descriptor_release(&adopted);
}

static void takes_objects_and_reloadable_options(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  sound.ops.reconfigure = sound_reconfigure;
  sound.options[0] = (struct hipmm_option){
      .name = "memory", .type = HIPMM_OPTION_OBJECT, .unit = "region", .doc = "A region", .flags = 0};
  sound.options[1].flags = HIPMM_OPTION_RELOADABLE;
  sound.options[2].flags = HIPMM_OPTION_RELOADABLE;
  assert_ok(adopt(&adopted));
  assert_status(adopted.ops->reconfigure(NULL, "kind", NULL), HIPMM_E_LIMIT);
  descriptor_release(&adopted);
}

static void asks_no_ops_of_a_runtime(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  sound.plugin.role = HIPMM_ROLE_RUNTIME;
  sound.plugin.ops = NULL;
  sound.plugin.destroy = NULL;
  assert_ok(adopt(&adopted));
  adopted.destroy(NULL);
  descriptor_release(&adopted);
}

static void needs_no_tables(void **state)
{
  (void)state;
  struct hipmm_plugin adopted;
  sound.plugin.options = NULL;
  sound.plugin.values = sound.plugin.actions = NULL;
  sound.plugin.n_options = sound.plugin.n_values = sound.plugin.n_actions = 0;
  sound.plugin.options_bytes = 0;
  sound.plugin.option_bytes = sound.plugin.feature_bytes = 0;
  assert_ok(adopt(&adopted));
  descriptor_release(&adopted);
}

static void takes_a_separator_as_a_default(void **state)
{
  static const char *const texts[] = {"\t", "\n", "\xe2\x80\xa8"}; /* U+2028 */
  static const uint32_t types[] = {HIPMM_OPTION_STRING, HIPMM_OPTION_STRINGS};
  (void)state;
  for (int i = 0; i < 6; i++) {
    struct hipmm_plugin adopted;
    make_sound(NULL);
    sound.options[2] =
        (struct hipmm_option){.name = "separator", .type = types[i % 2], .doc = "A text", .initial = texts[i / 2]};
    assert_ok(adopt(&adopted));
    assert_string_equal(adopted.options[2].initial, texts[i / 2]);
    descriptor_release(&adopted);
  }
}

/* ---- What is refused ---- */

struct spoiled {
  const char *name;
  void (*spoil)(void);
  const char *message;
};

static void spoil_abi(void)
{
  sound.plugin.abi_version = HIPMM_PLUGIN_ABI + 1;
}
static void spoil_struct_size(void)
{
  sound.plugin.struct_size = offsetof(struct hipmm_plugin, destroy);
}
static void spoil_struct_size_wholly(void)
{
  sound.plugin.struct_size = 0;
}
static void spoil_features(void)
{
  sound.plugin.required_features = 0x8000000000000001u;
}
static void spoil_type(void)
{
  sound.plugin.type = NULL;
}
static void spoil_version(void)
{
  sound.plugin.version = NULL;
}
static void spoil_doc(void)
{
  sound.plugin.doc = NULL;
}
static void spoil_type_name(void)
{
  sound.plugin.type = "other";
}
static void spoil_role_low(void)
{
  sound.plugin.role = 0;
}
static void spoil_role_high(void)
{
  sound.plugin.role = HIPMM_ROLE_RUNTIME + 1;
}
static void spoil_ops(void)
{
  sound.plugin.ops = NULL;
}
static void spoil_create(void)
{
  sound.plugin.create = NULL;
}
static void spoil_destroy(void)
{
  sound.plugin.destroy = NULL;
}
static void spoil_upstreams(void)
{
  sound.plugin.min_upstreams = 3;
}
static void spoil_allocate(void)
{
  sound.ops.allocate = NULL;
}
static void spoil_deallocate(void)
{
  sound.ops.deallocate = NULL;
}
static void spoil_ops_size(void)
{
  sound.ops.struct_size = offsetof(struct hipmm_ops, deallocate);
}
static void spoil_options(void)
{
  sound.plugin.options = NULL;
}
static void spoil_option_bytes(void)
{
  sound.plugin.option_bytes = offsetof(struct hipmm_option, minimum) - 1;
}
static void spoil_row_name(void)
{
  sound.options[1].name = NULL;
}
static void spoil_row_doc(void)
{
  sound.options[1].doc = NULL;
}
static void spoil_row_type_low(void)
{
  sound.options[1].type = 0;
}
static void spoil_row_type_high(void)
{
  sound.options[1].type = HIPMM_OPTION_OBJECT + 1;
}
static void spoil_row_object(void)
{
  sound.options[0].type = HIPMM_OPTION_OBJECT;
  sound.options[0].unit = "provider";
}
static void spoil_row_object_without_kind(void)
{
  sound.options[0].type = HIPMM_OPTION_OBJECT;
}
static void spoil_reloadable(void)
{
  sound.options[1].flags = HIPMM_OPTION_RELOADABLE;
}
static void spoil_reloadable_of_a_runtime(void)
{
  sound.plugin.role = HIPMM_ROLE_RUNTIME;
  sound.plugin.ops = NULL;
  sound.options[1].flags = HIPMM_OPTION_RELOADABLE;
}
static void spoil_reloadable_resource(void)
{
  sound.ops.reconfigure = sound_reconfigure;
  sound.options[0].type = HIPMM_OPTION_RESOURCE;
  sound.options[0].flags = HIPMM_OPTION_RELOADABLE;
}
static void spoil_reloadable_resources(void)
{
  sound.ops.reconfigure = sound_reconfigure;
  sound.fields[0].type = HIPMM_OPTION_RESOURCE;
  sound.options[2].flags = HIPMM_OPTION_RELOADABLE;
}
static void spoil_reloadable_field(void)
{
  sound.ops.reconfigure = sound_reconfigure;
  sound.fields[0].flags = HIPMM_OPTION_RELOADABLE;
}
static void spoil_row_choices(void)
{
  sound.options[1].choices = NULL;
}
static void spoil_row_no_choice(void)
{
  sound.options[1].choices = &sound_kinds[2];
}
static void spoil_row_no_word(void)
{
  sound.options[0].choices = &sound_kinds[2];
}
/* Its choices have no end: no pointer follows them. */
static void spoil_row_endless(void)
{
  static const uintptr_t endless[] = {(uintptr_t) "one", 0x5a5a5a5a5a5a5a5a};
  sound.options[1].choices = (const char *const *)endless;
}
static void spoil_type_character(void)
{
  sound.plugin.type = "so\nund";
}
static void spoil_version_character(void)
{
  sound.plugin.version = "1\033[2J";
}
static void spoil_doc_bytes(void)
{
  sound.plugin.doc = "A plugin\xff";
}
static void spoil_row_doc_character(void)
{
  sound.options[1].doc = "A kind\xe2\x80\xae"; /* U+202E */
}
static void spoil_row_choice_character(void)
{
  static const char *const kinds[] = {"one", "t\to", NULL};
  sound.options[1].choices = kinds;
}
static void spoil_row_default_character(void)
{
  sound.options[0].initial = "1\tKiB";
}
static void spoil_row_default_bytes(void)
{
  sound.options[0].type = HIPMM_OPTION_STRING;
  sound.options[0].initial = "\xa7"; /* of Latin-1 */
}
static void spoil_row_unit_bytes(void)
{
  sound.options[0].unit = "\xb5s"; /* of Latin-1 */
}
static void spoil_action_doc_bytes(void)
{
  sound.actions[0].doc = "L\xe4uft"; /* of Latin-1 */
}
static void spoil_value_name_bytes(void)
{
  sound.values[0].name = "wei\xc3";
}
static void spoil_row_askew(void)
{
  sound.options[1].choices = (const char *const *)((uintptr_t)sound_kinds + 1);
}
static void spoil_row_foreign_name(void)
{
  sound.options[1].name = (const char *)(uintptr_t)0x5a5a5a5a5a5a5a5a;
}
static void spoil_row_foreign_default(void)
{
  sound.options[1].initial = (const char *)(uintptr_t)1;
}
static void spoil_row_foreign_variable(void)
{
  sound.options[1].variable = (const char *)(uintptr_t)1;
}
static void spoil_row_foreign_kind(void)
{
  sound.options[0].type = HIPMM_OPTION_OBJECT;
  sound.options[0].unit = (const char *)(uintptr_t)1;
}
static void spoil_row_offset(void)
{
  sound.options[1].offset = sizeof(struct sound_options);
}
static void spoil_row_offset_far(void)
{
  sound.options[1].offset = SIZE_MAX - 2;
}
static void spoil_row_end(void)
{
  sound.options[2].offset = sizeof(struct sound_options) - sizeof(struct hipmm_list) + 1;
}
static void spoil_row_twice(void)
{
  sound.options[2].name = "size";
}
/* Tables that claim more rows than their memory can hold. */
static void spoil_options_claim(void)
{
  sound.plugin.n_options = UINT32_MAX;
}
static void spoil_fields_claim(void)
{
  sound.options[2].n_fields = UINT32_MAX;
}
static void spoil_values_claim(void)
{
  sound.plugin.n_values = UINT32_MAX;
}
static void spoil_actions_claim(void)
{
  sound.plugin.feature_bytes = UINT32_MAX;
}
static void spoil_options_place(void)
{
  sound.plugin.options = (const struct hipmm_option *)(uintptr_t)sizeof(struct hipmm_option);
}
static void spoil_options_size(void)
{
  sound.plugin.options_bytes = SIZE_MAX;
}
static void spoil_ops_place(void)
{
  sound.plugin.ops = (const struct hipmm_ops *)(uintptr_t)sizeof(struct hipmm_ops);
}
static void spoil_type_place(void)
{
  sound.plugin.type = (const char *)(uintptr_t)1;
}
static void spoil_version_place(void)
{
  sound.plugin.version = (const char *)(uintptr_t)1;
}
static void spoil_value_unit(void)
{
  sound.values[0].unit = (const char *)(uintptr_t)1;
}
static void spoil_fields(void)
{
  sound.options[2].fields = NULL;
}
static void spoil_field(void)
{
  sound.fields[0].name = NULL;
}
static void spoil_field_bytes(void)
{
  sound.options[2].field_bytes = sizeof(uint64_t) - 1;
}
static void spoil_values(void)
{
  sound.plugin.values = NULL;
}
static void spoil_value_name(void)
{
  sound.values[0].name = NULL;
}
static void spoil_action_doc(void)
{
  sound.actions[0].doc = NULL;
}
static void spoil_feature_bytes(void)
{
  sound.plugin.feature_bytes = sizeof(struct hipmm_feature) - 1;
}

/* A list whose rows are the list itself. */
static void spoil_with_itself(void)
{
  sound.options[2].fields = sound.options;
  sound.options[2].n_fields = 3;
  sound.options[2].field_bytes = sizeof(struct sound_options);
}

#define CLAIM_MESSAGE    "is larger than the memory that is loaded there"
#define TABLE_MESSAGE    "its option table is missing, its rows too short, or its lists too deep"
#define OPS_MESSAGE      "its ops lack allocate or deallocate, or their struct_size"
#define FEATURES_MESSAGE "its table of values or actions is broken"
#define TEXT_MESSAGE     "a constant text, one line of UTF-8 without control characters and invisible marks"

static const struct spoiled spoiled[] = {
    {"refuses another ABI", spoil_abi, "speaks plugin ABI 2, this hipmm speaks 1; rebuild it against"},
    {"refuses a short descriptor", spoil_struct_size, "bytes long, ABI 1 has"},
    {"refuses a descriptor without size", spoil_struct_size_wholly, "says it is 0 bytes long"},
    {"refuses features it does not have", spoil_features, "requires features 0x8000000000000001 that"},
    {"refuses no type", spoil_type, "lacks type, version or doc"},
    {"refuses no version", spoil_version, "lacks type, version or doc"},
    {"refuses no doc", spoil_doc, "lacks type, version or doc"},
    {"refuses a type with a control character", spoil_type_character, "or one of them is not a line of UTF-8"},
    {"refuses a version with a control character", spoil_version_character, "or one of them is not a line of UTF-8"},
    {"refuses a doc that is not UTF-8", spoil_doc_bytes, "or one of them is not a line of UTF-8"},
    {"refuses a row's doc with a control character", spoil_row_doc_character,
     "row 1 of its option table (kind) is broken: `doc` must be " TEXT_MESSAGE},
    {"refuses a choice with a control character", spoil_row_choice_character,
     "row 1 of its option table (kind) is broken: `choices` must be " TEXT_MESSAGE},
    {"refuses a default of a number with a control character", spoil_row_default_character,
     "row 0 of its option table (size) is broken: `initial` must be " TEXT_MESSAGE},
    {"refuses a default of a text that is not UTF-8", spoil_row_default_bytes,
     "row 0 of its option table (size) is broken: `initial` must be a constant text in UTF-8"},
    {"refuses a row's unit that is not UTF-8", spoil_row_unit_bytes,
     "row 0 of its option table (size) is broken: `unit` must be " TEXT_MESSAGE},
    {"refuses a value's name that is not UTF-8", spoil_value_name_bytes,
     FEATURES_MESSAGE ": `name` of row 0 (no name) must be " TEXT_MESSAGE},
    {"refuses an action's doc that is not UTF-8", spoil_action_doc_bytes,
     FEATURES_MESSAGE ": `doc` of row 0 (flush) must be " TEXT_MESSAGE},
    {"refuses the type of another file", spoil_type_name, "describes \"other\"; the file must be called other.so"},
    {"refuses no role", spoil_role_low, "role 0 is unknown"},
    {"refuses an unknown role", spoil_role_high, "role 5 is unknown"},
    {"refuses no ops", spoil_ops, "lacks ops, create or destroy"},
    {"refuses no create", spoil_create, "lacks ops, create or destroy"},
    {"refuses no destroy", spoil_destroy, "lacks ops, create or destroy"},
    {"refuses more upstreams at least than at most", spoil_upstreams, "min_upstreams 3 is above max_upstreams 2"},
    {"refuses ops without allocate", spoil_allocate, OPS_MESSAGE},
    {"refuses ops without deallocate", spoil_deallocate, OPS_MESSAGE},
    {"refuses ops that are too short", spoil_ops_size, OPS_MESSAGE},
    {"refuses a missing option table", spoil_options, TABLE_MESSAGE},
    {"refuses rows that are too short", spoil_option_bytes, TABLE_MESSAGE},
    {"refuses a row without name", spoil_row_name, "row 1 of its option table (no name) is broken"},
    {"refuses a row without doc", spoil_row_doc, "row 1 of its option table (kind) is broken"},
    {"refuses a row without type", spoil_row_type_low, "row 1 of its option table (kind) is broken"},
    {"refuses a row of an unknown type", spoil_row_type_high, "row 1 of its option table (kind) is broken"},
    {"refuses an object of an unknown kind", spoil_row_object, "row 0 of its option table (size) is broken"},
    {"refuses an object of no kind", spoil_row_object_without_kind, "row 0 of its option table (size) is broken"},
    {"refuses a reloadable option without reconfigure", spoil_reloadable,
     "its option kind is reloadable, but its ops lack reconfigure"},
    {"refuses a reloadable option of a runtime", spoil_reloadable_of_a_runtime,
     "its option kind is reloadable, but its ops lack reconfigure"},
    {"refuses a reloadable name of a resource", spoil_reloadable_resource,
     "its option size is reloadable, but names resources"},
    {"refuses a reloadable list of names of resources", spoil_reloadable_resources,
     "its option bins is reloadable, but names resources"},
    {"refuses a reloadable field of a list", spoil_reloadable_field, "row 0 of its option table (size) is broken"},
    {"refuses a choice without choices", spoil_row_choices, "row 1 of its option table (kind) is broken"},
    {"refuses a choice of nothing", spoil_row_no_choice, "row 1 of its option table (kind) is broken"},
    {"refuses a keyword without words", spoil_row_no_word, "row 0 of its option table (size) is broken"},
    {"refuses choices without end", spoil_row_endless, "row 1 of its option table (kind) is broken"},
    {"refuses choices that begin between pointers", spoil_row_askew, "row 1 of its option table (kind) is broken"},
    {"refuses a name that is nowhere", spoil_row_foreign_name, "row 1 of its option table (no name) is broken"},
    {"refuses a default that is nowhere", spoil_row_foreign_default, "row 1 of its option table (kind) is broken"},
    {"refuses a variable that is nowhere", spoil_row_foreign_variable, "row 1 of its option table (kind) is broken"},
    {"refuses an object of a kind that is nowhere", spoil_row_foreign_kind,
     "row 0 of its option table (size) is broken"},
    {"refuses more options than it has", spoil_options_claim, CLAIM_MESSAGE},
    {"refuses more fields than it has", spoil_fields_claim, CLAIM_MESSAGE},
    {"refuses more values than it has", spoil_values_claim, CLAIM_MESSAGE},
    {"refuses larger actions than it has", spoil_actions_claim, CLAIM_MESSAGE},
    {"refuses an option table that is nowhere", spoil_options_place, CLAIM_MESSAGE},
    {"refuses an option struct of all memory", spoil_options_size, "its option struct has 18446744073709551615 bytes"},
    {"refuses ops that are nowhere", spoil_ops_place, "its ops are not in the plugin"},
    {"refuses a type that is nowhere", spoil_type_place, "lacks type, version or doc"},
    {"refuses a version that is nowhere", spoil_version_place, "lacks type, version or doc"},
    {"refuses a unit that is nowhere", spoil_value_unit, FEATURES_MESSAGE},
    {"refuses a field behind the struct", spoil_row_offset, "row 1 of its option table (kind) is broken"},
    {"refuses a field far behind the struct", spoil_row_offset_far, "row 1 of its option table (kind) is broken"},
    {"refuses a field that ends behind the struct", spoil_row_end, "row 2 of its option table (bins) is broken"},
    {"refuses two options of one name", spoil_row_twice, "its option table has size twice"},
    {"refuses a list without fields", spoil_fields, TABLE_MESSAGE},
    {"refuses a broken field", spoil_field, "row 0 of its option table (no name) is broken"},
    {"refuses a field behind the list's struct", spoil_field_bytes, "row 0 of its option table (size) is broken"},
    {"refuses a list that contains itself", spoil_with_itself, TABLE_MESSAGE},
    {"refuses missing values", spoil_values, FEATURES_MESSAGE},
    {"refuses a value without name", spoil_value_name, FEATURES_MESSAGE},
    {"refuses an action without doc", spoil_action_doc, FEATURES_MESSAGE},
    {"refuses short rows of values", spoil_feature_bytes, FEATURES_MESSAGE},
};

static void refuses(void **state)
{
  const struct spoiled *row = *state;
  struct hipmm_plugin adopted = {.type = "untouched"};
  make_sound(NULL);
  row->spoil();
  assert_status(adopt(&adopted), HIPMM_E_PLUGIN_ABI);
  assert_message("/dir/sound.so: ");
  assert_message(row->message);
  assert_string_equal(adopted.type, "untouched");
}

int main(void)
{
  struct CMUnitTest tests[80] = {
      cmocka_unit_test_setup(takes_a_sound_one_over, make_sound),
      cmocka_unit_test_setup(fills_in_optional_ops, make_sound),
      cmocka_unit_test_setup(takes_a_descriptor_without_validate, make_sound),
      cmocka_unit_test_setup(takes_an_older_row_over, make_sound),
      cmocka_unit_test_setup(takes_a_newer_plugin_over, make_sound),
      cmocka_unit_test_setup(takes_objects_and_reloadable_options, make_sound),
      cmocka_unit_test_setup(asks_no_ops_of_a_runtime, make_sound),
      cmocka_unit_test_setup(needs_no_tables, make_sound),
      cmocka_unit_test_setup(takes_a_separator_as_a_default, make_sound),
  };
  size_t n = 9;
  for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++)
    tests[n++] = (struct CMUnitTest){
        .name = spoiled[i].name, .test_func = refuses, .initial_state = (void *)(uintptr_t)&spoiled[i]};
  return _cmocka_run_group_tests("descriptor", tests, n, NULL, NULL);
}
