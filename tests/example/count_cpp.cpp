/* SPDX-License-Identifier: MIT */
/* count_cpp.cpp: a plugin in C++20, from hipmm's installed headers alone:
 *
 *     g++ -std=c++20 -shared -fPIC $(pkg-config --cflags hipmm) -o count_cpp.so count_cpp.cpp
 *     hipmm plugin test count_cpp.so
 *
 * `count_cpp` is an adaptor that counts the blocks that are live, and gives no more than an option says. No exception may
 * leave a plugin: its functions are called from C. */
#include <hipmm/plugin.h>

#include <atomic>
#include <new>

namespace
{

struct options {
  int64_t most_blocks;
};

/* Gives a block back to the count unless it is kept. */
class place
{
public:
  place(std::atomic<int64_t> &count, int64_t most) : count_(count), granted_(count.fetch_add(1) < most)
  {
  }
  place(const place &) = delete;
  place &operator=(const place &) = delete;
  ~place()
  {
    if (!kept_) count_.fetch_sub(1);
  }
  bool granted() const
  {
    return granted_;
  }
  void keep()
  {
    kept_ = true;
  }

private:
  std::atomic<int64_t> &count_;
  bool granted_, kept_ = false;
};

struct counter {
  const hipmm_services *services;
  hipmm_resource *upstream;
  int64_t most;
  std::atomic<int64_t> live;
};

hipmm_status allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  auto *that = static_cast<counter *>(self);
  if (!bytes) return hipmm_upstream_allocate(that->upstream, bytes, alignment, stream, ptr_out);
  place mine(that->live, that->most);
  if (!mine.granted())
    return that->services->refuse(that->services, HIPMM_E_LIMIT,
                                  "{0} blocks are live, as many as \"most_blocks\" allows",
                                  static_cast<uint64_t>(that->most), 0, 0);
  hipmm_status status = hipmm_upstream_allocate(that->upstream, bytes, alignment, stream, ptr_out);
  if (status == HIPMM_OK) mine.keep();
  return status;
}

hipmm_status deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  auto *that = static_cast<counter *>(self);
  hipmm_status status = hipmm_upstream_deallocate(that->upstream, ptr, bytes, alignment, stream);
  if (status == HIPMM_OK && ptr) that->live.fetch_sub(1);
  return status;
}

hipmm_status query(void *self, size_t, int64_t *value_out)
{
  *value_out = static_cast<counter *>(self)->live.load();
  return HIPMM_OK;
}

hipmm_status create(const hipmm_services *services, const void *given, hipmm_resource *const *upstreams, size_t,
                    void **self_out)
{
  void *memory = services->host_allocate(services, sizeof(counter));
  if (!memory)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no host memory for the resource itself");
  *self_out = new (memory) counter{services, upstreams[0], static_cast<const options *>(given)->most_blocks, {}};
  return HIPMM_OK;
}

void destroy(void *self)
{
  auto *that = static_cast<counter *>(self);
  const hipmm_services *services = that->services;
  that->~counter();
  services->host_free(services, that, sizeof *that);
}

constexpr hipmm_option option_table[] = {
    {.name = "most_blocks",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(options, most_blocks),
     .initial = "1000000",
     .unit = "blocks",
     .doc = "The most blocks that are live at once",
     .minimum = "1"},
};

constexpr hipmm_feature values[] = {{.name = "live_blocks_cpp", .unit = "blocks", .doc = "Blocks that are live"}};

constexpr hipmm_ops ops = {
    .struct_size = sizeof(hipmm_ops), .allocate = allocate, .deallocate = deallocate, .query = query};

} // namespace

extern "C" HIPMM_EXPORT const hipmm_plugin count_cpp_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "count_cpp",
    .version = "1.0",
    .doc = "Counts live blocks, and limits their number",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = option_table,
    .n_options = 1,
    .options_bytes = sizeof(options),
    .values = values,
    .n_values = 1,
    .ops = &ops,
    .create = create,
    .destroy = destroy,
};
