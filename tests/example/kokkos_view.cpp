// SPDX-License-Identifier: MIT
// kokkos_view.cpp: a View of Kokkos over memory of hipmm. Kokkos has no hook that replaces its allocations: an unmanaged View
// takes a pointer, and an owner beside it frees the memory. For programs as they are, `hipmm run` serves every View
// (doc/recipes.md).
//
// Run: with Kokkos 3.4.1 for OpenMP (Debian 12) on hipmm's software device; by tests/doors/recipes.sh with a stand-in. Not run:
// on a GPU.
//
//     c++ -std=c++20 kokkos_view.cpp -o program $(pkg-config --cflags --libs hipmm) -I KOKKOS/include -lkokkoscore
#include <Kokkos_Core.hpp>

#include <hipmm/hipmm.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

// A View of n elements, and its memory, which is freed with the last copy of this on the default stream. Views are copied
// freely, also into kernels: keep one of these as long as any is in use, and call Kokkos::fence() before it ends.
template <typename T, typename Space = Kokkos::DefaultExecutionSpace::memory_space> struct hipmm_view {
  using view_type = Kokkos::View<T *, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  explicit hipmm_view(std::size_t n, hipmm_resource *resource = nullptr)
  {
    void *ptr = nullptr;
    if (hipmm_allocate(resource, n * sizeof(T), nullptr, &ptr) != HIPMM_OK)
      throw std::runtime_error(hipmm_last_error_message());
    memory = std::shared_ptr<T>(static_cast<T *>(ptr), [=](T *block) {
      if (hipmm_deallocate(resource, block, n * sizeof(T), nullptr) != HIPMM_OK)
        std::fprintf(stderr, "%s\n", hipmm_last_error_message());
    });
    view = view_type(memory.get(), n);
  }

  std::shared_ptr<T> memory;
  view_type view;
};

static int run()
{
  hipmm_resource *resource = nullptr;
  hipmm_statistics counters;
  if (hipmm_resource_get_current(&resource) != HIPMM_OK) return 1;
  {
    hipmm_view<double> numbers(1000, resource);
    auto view = numbers.view;
    Kokkos::parallel_for(
        1000, KOKKOS_LAMBDA(int i) { view(i) = 2.0 * i; });
    Kokkos::fence();
    if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
    std::printf("a View has %lld bytes of hipmm; element 999 is %g\n", static_cast<long long>(counters.current_bytes),
                view(999));
    try {
      hipmm_view<double> large(std::size_t{1} << 42, resource);
    } catch (const std::exception &error) {
      std::printf("too large: %s\n", error.what());
    }
  }
  if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
  std::printf("%lld bytes are left\n", static_cast<long long>(counters.current_bytes));
  hipmm_resource_release(resource);
  return 0;
}

int main(int argc, char **argv)
{
  if (hipmm_init() != HIPMM_OK) {
    std::fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  Kokkos::initialize(argc, argv);
  int status = run();
  Kokkos::finalize();
  return status || hipmm_finalize() != HIPMM_OK;
}
