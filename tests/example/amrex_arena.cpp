// SPDX-License-Identifier: MIT
// amrex_arena.cpp: an Arena of AMReX over hipmm, for the data of single MultiFabs: MFInfo().SetArena(&arena). The arena of all
// other data is AMReX's own; these switches keep it small, so that `hipmm run` serves a program as it is:
//
//     hipmm run --report -- ./main3d.ex inputs amrex.the_arena_init_size=0 amrex.the_arena_release_threshold=0
//
// Run: with AMReX 24.10 of the host on hipmm's software device, also a MultiFab in this arena; by tests/doors/recipes.sh with a
// stand-in of Arena. Not run: the switches, nor on a GPU.
//
//     c++ -std=c++17 amrex_arena.cpp -o program $(pkg-config --cflags --libs hipmm) -I AMREX/include -lamrex_3d
#include <AMReX_Arena.H>

#include <hipmm/inspect.h>

#include <cstdio>
#include <stdexcept>

class hipmm_arena : public amrex::Arena
{
public:
  explicit hipmm_arena(hipmm_resource *resource) : m_resource(resource)
  {
    hipmm_resource_retain(resource);
  }
  ~hipmm_arena() override
  {
    hipmm_resource_release(m_resource);
  }
  hipmm_arena(const hipmm_arena &) = delete;
  hipmm_arena &operator=(const hipmm_arena &) = delete;

  void *alloc(std::size_t bytes) override
  {
    void *ptr = nullptr;
    check(hipmm_allocate(m_resource, bytes, nullptr, &ptr));
    return ptr;
  }

  void free(void *ptr) override
  {
    if (ptr != nullptr) check(hipmm_deallocate(m_resource, ptr, 0, nullptr));
  }

  // What AMReX asks to choose between loops on the host and kernels.
  bool isDeviceAccessible() const override
  {
    return (access() & HIPMM_ACCESS_DEVICE) != 0;
  }
  bool isHostAccessible() const override
  {
    return (access() & HIPMM_ACCESS_HOST) != 0;
  }
  bool isDevice() const override
  {
    return !isHostAccessible();
  }
  bool isManaged() const override
  {
    return isHostAccessible() && isDeviceAccessible();
  }
  bool isPinned() const override
  {
    return false;
  }

private:
  unsigned access() const
  {
    unsigned flags = 0;
    check(hipmm_resource_access(m_resource, &flags));
    return flags;
  }

  static void check(hipmm_status status)
  {
    if (status != HIPMM_OK) throw std::runtime_error(hipmm_last_error_message());
  }

  hipmm_resource *m_resource;
};

int main()
{
  hipmm_resource *resource = nullptr;
  if (hipmm_init() != HIPMM_OK || hipmm_resource_get_current(&resource) != HIPMM_OK) {
    std::fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  hipmm_statistics counters;
  {
    hipmm_arena arena(resource);
    amrex::Arena &used = arena;
    void *ptr = used.alloc(80000);
    if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
    std::printf("an Arena has %lld bytes of hipmm, %s\n", static_cast<long long>(counters.current_bytes),
                used.isDevice() ? "of the device" : "that the host can use");
    used.free(ptr);
    try {
      static_cast<void>(used.alloc(std::size_t{1} << 45));
    } catch (const std::exception &error) {
      std::printf("too large: %s\n", error.what());
    }
  }
  if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
  std::printf("%lld bytes are left\n", static_cast<long long>(counters.current_bytes));
  hipmm_resource_release(resource);
  return hipmm_finalize() != HIPMM_OK;
}
